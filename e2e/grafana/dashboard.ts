// What a dashboard file may hold: Grafana's types as JSON spells them, with the options of each kind of panel.
//
// A literal in place of `unknown` is what makes the compiler look: a misspelt option is an error and not a
// setting that Grafana drops without a word.
import type { Dashboard, FieldConfig, FieldConfigSource, Panel, RowPanel } from '@grafana/schema';
import type { Options as BarGauge } from '@grafana/schema/dist/esm/raw/composable/bargauge/panelcfg/x/BarGaugePanelCfg_types.gen';
import type { Options as Stat } from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type { FieldConfig as StateField, Options as StateTimeline } from '@grafana/schema/dist/esm/raw/composable/statetimeline/panelcfg/x/StateTimelinePanelCfg_types.gen';
import type { FieldConfig as TableField, Options as Table } from '@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen';
import type { FieldConfig as SeriesField, Options as TimeSeries } from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';

/** The same as JSON: an enumeration is its values. */
type Json<T> = T extends string ? `${T}` : T extends object ? { [K in keyof T]: Json<T[K]> } : T;

/** What the Prometheus data source understands of a query; its own types are not published. */
interface Query {
  refId: string;
  datasource: { type: 'prometheus'; uid: '${datasource}' };
  editorMode: 'code';
  expr: string;
  legendFormat: string;
  range: boolean;
  instant: boolean;
  format?: 'table' | 'time_series' | 'heatmap';
}

interface Kind<Type extends string, Options, Field>
  extends Omit<Panel, 'type' | 'options' | 'fieldConfig' | 'targets'> {
  type: Type;
  title: string;
  description: string;
  options: Partial<Options>;
  fieldConfig: Omit<FieldConfigSource, 'defaults'> & {
    defaults: Omit<FieldConfig, 'custom'> & { custom?: Partial<Field> };
  };
  targets: Query[];
}

type Shown =
  | Kind<'timeseries', TimeSeries, SeriesField>
  | Kind<'stat', Stat, Record<string, never>>
  | Kind<'bargauge', BarGauge, Record<string, never>>
  | Kind<'table', Table, TableField>
  | Kind<'state-timeline', StateTimeline, StateField>
  | (Omit<RowPanel, 'panels'> & { panels: [] });

export type DashboardFile = Json<
  Omit<Dashboard, 'panels'> & { uid: string; title: string; description: string; panels: Shown[] }
>;
