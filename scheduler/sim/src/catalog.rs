//! The resource types the model serves: one table of built-in ones, plus the custom ones it was
//! started with.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    ConfigMap, Event, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod,
    ReplicationController, Secret, Service, ServiceAccount,
};
use k8s_openapi::api::events::v1::Event as NewEvent;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::DeviceClass;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::storage::v1::{
    CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::columns::{self, Column};
use crate::custom::CustomType;

/// The built-in types: to add one, add its row. [`Rules`] other than `Plain` are for types that the
/// real server treats in a way of their own.
const BUILTIN: &[Builtin] = &[
    row::<Namespace>(&["ns"], Rules::Namespace, &["status.phase"], columns::NAMESPACE),
    row::<Pod>(&["po"], Rules::Pod, POD_FIELDS, columns::POD),
    row::<Node>(&["no"], Rules::Node, &["spec.unschedulable"], columns::NODE),
    row::<Event>(&["ev"], Rules::Event, EVENT_FIELDS, columns::EVENT),
    row::<ConfigMap>(&["cm"], Rules::Plain, &[], columns::CONFIG_MAP),
    row::<ServiceAccount>(&["sa"], Rules::Plain, &[], columns::NAME_AND_AGE),
    row::<Secret>(&[], Rules::Secret, &["type"], columns::SECRET),
    row::<Service>(&["svc"], Rules::Service, &[], columns::NAME_AND_AGE),
    row::<ReplicationController>(&["rc"], Rules::Controlled, &[], columns::NAME_AND_AGE),
    row::<ReplicaSet>(&["rs"], Rules::Controlled, &[], columns::NAME_AND_AGE),
    row::<StatefulSet>(&["sts"], Rules::Controlled, &[], columns::NAME_AND_AGE),
    row::<PodDisruptionBudget>(&["pdb"], Rules::Budget, &[], columns::NAME_AND_AGE),
    row::<PersistentVolume>(&["pv"], Rules::Controlled, &[], columns::NAME_AND_AGE),
    row::<PersistentVolumeClaim>(&["pvc"], Rules::Controlled, &[], columns::NAME_AND_AGE),
    row::<StorageClass>(&["sc"], Rules::Plain, &[], columns::NAME_AND_AGE),
    row::<CSINode>(&[], Rules::Plain, &[], columns::NAME_AND_AGE),
    row::<CSIDriver>(&[], Rules::Plain, &[], columns::NAME_AND_AGE),
    row::<CSIStorageCapacity>(&[], Rules::Plain, &[], columns::NAME_AND_AGE),
    row::<VolumeAttachment>(&[], Rules::Controlled, &[], columns::NAME_AND_AGE),
    row::<DeviceClass>(&[], Rules::Plain, &[], columns::NAME_AND_AGE),
    row::<Lease>(&[], Rules::Lease, &[], columns::LEASE),
    row::<NewEvent>(&["ev"], Rules::NewEvent, NEW_EVENT_FIELDS, columns::EVENT),
    row::<PriorityClass>(&["pc"], Rules::PriorityClass, &[], columns::PRIORITY_CLASS),
    row::<CustomResourceDefinition>(&["crd", "crds"], Rules::Definition, &[], columns::DEFINITION),
];

/// Fields that `fieldSelector` may name, besides `metadata.name` and `metadata.namespace`.
const POD_FIELDS: &[&str] = &[
    "spec.nodeName",
    "spec.schedulerName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
];

const EVENT_FIELDS: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "type",
    "reportingComponent",
];

/// The same fields in the same order under their newer names: both types share their objects.
const NEW_EVENT_FIELDS: &[&str] = &[
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reason",
    "type",
    "reportingController",
];

/// What the server does with a type beyond storing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rules {
    Plain,
    /// A controller works on its spec and answers in its status. There is none here: tests write
    /// the status themselves.
    Controlled,
    /// The same, with defaults of their own.
    Service,
    Budget,
    PriorityClass,
    Namespace,
    Pod,
    Node,
    Secret,
    Lease,
    /// Events are stored in their core/v1 form, and kept up to a bound.
    Event,
    /// The events.k8s.io/v1 names for the same objects.
    NewEvent,
    /// CustomResourceDefinitions are given at start and read only.
    Definition,
    Custom,
}

#[derive(Debug)]
pub(crate) struct ResourceType {
    /// Where its objects are kept; two names of one type share a shelf.
    pub shelf: usize,
    pub group: String,
    pub version: String,
    pub plural: String,
    pub singular: String,
    pub kind: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub namespaced: bool,
    pub has_status: bool,
    pub rules: Rules,
    /// What `fieldSelector` may name, and where that is in the stored object.
    pub fields: Vec<String>,
    pub field_pointers: Vec<String>,
    pub columns: &'static [Column],
    pub custom: Option<CustomType>,
    decode: fn(&Value) -> Result<(), serde_json::Error>,
}

impl ResourceType {
    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// `pods`, `leases.coordination.k8s.io`.
    pub fn qualified(&self) -> String {
        match self.group.as_str() {
            "" => self.plural.clone(),
            group => format!("{}.{group}", self.plural),
        }
    }

    /// `Pod`, `Lease.coordination.k8s.io`.
    pub fn qualified_kind(&self) -> String {
        match self.group.as_str() {
            "" => self.kind.clone(),
            group => format!("{}.{group}", self.kind),
        }
    }

    /// Where the real server keeps its objects in etcd.
    pub fn storage_place(&self) -> String {
        match self.plural.as_str() {
            "nodes" => "/registry/minions".to_owned(),
            "services" => "/registry/services/specs".to_owned(),
            plural if self.custom.is_some() => format!("/registry/{}/{plural}", self.group),
            plural => format!("/registry/{plural}"),
        }
    }

    /// What a `Status` says about one object of this type.
    pub fn details(&self, name: &str) -> Value {
        let mut details = json!({ "name": name, "kind": self.plural });
        if !self.group.is_empty() {
            details["group"] = json!(self.group);
        }
        details
    }

    pub fn verbs(&self) -> &'static [&'static str] {
        match self.rules {
            Rules::Definition => &["get", "list", "watch"],
            _ => {
                &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
            }
        }
    }

    /// Whether a `PUT` of something that is not there creates it.
    pub fn is_created_by_put(&self) -> bool {
        matches!(self.rules, Rules::Service | Rules::Lease | Rules::Event | Rules::NewEvent)
    }

    /// Whether a `PUT` has to say which version it replaces.
    pub fn needs_version(&self) -> bool {
        matches!(self.rules, Rules::Lease | Rules::Budget | Rules::Custom)
    }

    /// Whether the answer to a deletion shows the object, as in the real server.
    pub fn shows_the_deleted(&self) -> bool {
        matches!(self.rules, Rules::Pod | Rules::Service) || self.kind == "ServiceAccount"
    }

    pub fn has_generation(&self) -> bool {
        matches!(
            self.rules,
            Rules::Controlled
                | Rules::Budget
                | Rules::Pod
                | Rules::PriorityClass
                | Rules::Definition
                | Rules::Custom
        )
    }

    /// Whether `object` has the form of this type, as far as Kubernetes' own definition goes.
    pub fn decodes(&self, object: &Value) -> Result<(), serde_json::Error> {
        (self.decode)(object)
    }
}

/// Every type, found by what a path names.
#[derive(Debug)]
pub(crate) struct Catalog {
    pub types: Vec<Arc<ResourceType>>,
    pub shelves: usize,
}

impl Catalog {
    pub fn new(definitions: &[CustomResourceDefinition]) -> Self {
        let mut catalog = Self { types: Vec::new(), shelves: 0 };
        for row in BUILTIN {
            let shared = catalog.types.iter().find(|ty| ty.kind == row.kind).map(|ty| ty.shelf);
            let shelf = shared.unwrap_or(catalog.shelves);
            catalog.push(row.resource_type(shelf));
        }
        for definition in definitions {
            if let Some(ty) = custom_type(definition, catalog.shelves) {
                catalog.push(ty);
            }
        }
        catalog
    }

    fn push(&mut self, ty: ResourceType) {
        self.shelves = self.shelves.max(ty.shelf + 1);
        self.types.push(Arc::new(ty));
    }

    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<ResourceType>> {
        self.types
            .iter()
            .find(|ty| ty.group == group && ty.version == version && ty.plural == plural)
    }

    /// The built-in type with these rules: every kind of rule but `Plain`,
    /// `Controlled` and `Custom` has one.
    pub fn with_rules(&self, rules: Rules) -> &Arc<ResourceType> {
        let found = self.types.iter().find(|ty| ty.rules == rules);
        found.unwrap_or(&self.types[0])
    }

    /// Group and version of every type, each once, in the order of the table.
    pub fn group_versions(&self) -> Vec<(&str, &str)> {
        let mut seen = Vec::new();
        for ty in &self.types {
            let entry = (ty.group.as_str(), ty.version.as_str());
            if !seen.contains(&entry) {
                seen.push(entry);
            }
        }
        seen
    }
}

struct Builtin {
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    kind: &'static str,
    namespaced: bool,
    short_names: &'static [&'static str],
    rules: Rules,
    fields: &'static [&'static str],
    columns: &'static [Column],
    decode: fn(&Value) -> Result<(), serde_json::Error>,
}

impl Builtin {
    fn resource_type(&self, place: usize) -> ResourceType {
        let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        let places = if self.rules == Rules::NewEvent { EVENT_FIELDS } else { self.fields };
        ResourceType {
            shelf: place,
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            plural: self.plural.to_owned(),
            singular: self.kind.to_lowercase(),
            kind: self.kind.to_owned(),
            short_names: owned(self.short_names),
            categories: Vec::new(),
            namespaced: self.namespaced,
            has_status: matches!(
                self.rules,
                Rules::Controlled
                    | Rules::Service
                    | Rules::Budget
                    | Rules::Namespace
                    | Rules::Pod
                    | Rules::Node
                    | Rules::Definition
            ),
            rules: self.rules,
            fields: owned(self.fields),
            field_pointers: places.iter().map(|field| pointer(field)).collect(),
            columns: self.columns,
            custom: None,
            decode: self.decode,
        }
    }
}

const fn row<K>(
    short_names: &'static [&'static str],
    rules: Rules,
    fields: &'static [&'static str],
    columns: &'static [Column],
) -> Builtin
where
    K: Resource + DeserializeOwned,
    K::Scope: IsNamespaced,
{
    Builtin {
        group: K::GROUP,
        version: K::VERSION,
        plural: K::URL_PATH_SEGMENT,
        kind: K::KIND,
        namespaced: K::Scope::NAMESPACED,
        short_names,
        rules,
        fields,
        columns,
        decode: decodes::<K>,
    }
}

fn decodes<K: DeserializeOwned>(object: &Value) -> Result<(), serde_json::Error> {
    K::deserialize(object).map(drop)
}

trait IsNamespaced {
    const NAMESPACED: bool;
}

impl IsNamespaced for NamespaceResourceScope {
    const NAMESPACED: bool = true;
}

impl IsNamespaced for ClusterResourceScope {
    const NAMESPACED: bool = false;
}

/// A definition without a served storage version has nothing to serve. Other versions are left out:
/// conversion is not modelled.
fn custom_type(definition: &CustomResourceDefinition, shelf: usize) -> Option<ResourceType> {
    let spec = &definition.spec;
    let version = spec.versions.iter().find(|version| version.served && version.storage)?;
    let names = &spec.names;
    let fields = version.selectable_fields.iter().flatten();
    let fields: Vec<String> =
        fields.map(|field| field.json_path.trim_start_matches('.').to_owned()).collect();
    Some(ResourceType {
        shelf,
        group: spec.group.clone(),
        version: version.name.clone(),
        plural: names.plural.clone(),
        singular: names.singular.clone().unwrap_or_else(|| names.kind.to_lowercase()),
        kind: names.kind.clone(),
        short_names: names.short_names.clone().unwrap_or_default(),
        categories: names.categories.clone().unwrap_or_default(),
        namespaced: spec.scope == "Namespaced",
        has_status: version.subresources.as_ref().is_some_and(|sub| sub.status.is_some()),
        rules: Rules::Custom,
        field_pointers: fields.iter().map(|field| pointer(field)).collect(),
        fields,
        columns: columns::NAME_AND_AGE,
        custom: Some(CustomType::new(version)),
        decode: |_| Ok(()),
    })
}

/// `spec.nodeName` as a JSON pointer.
fn pointer(field: &str) -> String {
    format!("/{}", field.replace('.', "/"))
}
