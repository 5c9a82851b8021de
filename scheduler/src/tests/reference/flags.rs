//! Every flag of `run`.

use clap::{Arg, CommandFactory as _};

use super::{Table, row};
use crate::args::Args;

pub fn table() -> Table {
    let command = Args::command();
    let run = command.find_subcommand("run").unwrap();
    let head = row(["Flag", "Default", "Meaning"]) + "|---|---|---|\n";
    let flags = run.get_arguments().filter(|flag| flag.get_id() != "help");
    Table { name: "flags of run", text: flags.fold(head, |text, flag| text + &described(flag)) }
}

fn described(flag: &Arg) -> String {
    let names: Vec<_> =
        flag.get_value_names().into_iter().flatten().map(ToString::to_string).collect();
    let takes_value = flag.get_action().takes_values();
    let value = if takes_value { format!(" {}", names.join(" ")) } else { String::new() };
    let name = format!("`--{}{value}`", flag.get_long().unwrap());
    let defaults: Vec<_> = flag
        .get_default_values()
        .iter()
        .filter(|_| takes_value)
        .map(|value| format!("`{}`", value.to_string_lossy()))
        .collect();
    let help = flag.get_long_help().or(flag.get_help()).map(ToString::to_string);
    row([&name, &defaults.join(", "), &help.unwrap_or_default()])
}
