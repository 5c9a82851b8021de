//! What must be true of devices in every version of every claim, whatever happened: read from the objects alone, by
//! none of the scheduler's own code.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::error::{Error, Result, ensure};
use crate::quantity::milli;
use crate::versions::Version;

/// As many as the API server lets a claim have.
const USERS_MAX: usize = 256;

/// Driver, pool and name.
type Device = (String, String, String);

/// The kinds whose versions are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceKind {
    Pod,
    Claim,
    Slice,
}

/// What the record shows, besides that nothing is wrong in it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct DeviceFigures {
    pub versions: usize,
    /// How often a claim got devices.
    pub allocations: usize,
    /// How often a Pod with claims was bound.
    pub bindings: usize,
}

/// All there is at one resourceVersion.
#[derive(Debug, Default)]
pub struct DeviceView {
    claims: BTreeMap<String, Value>,
    slices: BTreeMap<String, Value>,
    pods: BTreeMap<String, Value>,
    figures: DeviceFigures,
}

/// One device of one claim.
struct Held<'a> {
    claim: &'a str,
    share: Option<&'a str>,
    consumed: &'a Value,
}

impl DeviceView {
    /// Replays versions in the order in which they came to be, and fails at the first that leaves a device with too many
    /// claims, or binds a Pod without what its claims must have.
    pub fn replay(mut versions: Vec<(DeviceKind, Version)>) -> Result<DeviceFigures> {
        versions.sort_by_key(|(_, version)| version.resource_version);
        let mut view = Self::default();
        for (kind, version) in &versions {
            let at = version.resource_version;
            let outcome = view.apply(*kind, version);
            outcome.map_err(|problem| Error::Violated(format!("at version {at}: {problem}")))?;
        }
        view.figures.versions = versions.len();
        Ok(view.figures)
    }

    fn apply(&mut self, kind: DeviceKind, version: &Version) -> Result<()> {
        let object = &version.object;
        let uid = text(&object["metadata"]["uid"]);
        match kind {
            DeviceKind::Slice => {
                // Drivers may take away what is in use.
                put(&mut self.slices, uid, version);
                Ok(())
            }
            DeviceKind::Claim => {
                let before = put(&mut self.claims, uid, version);
                if version.deleted {
                    return Ok(());
                }
                self.check_claim(before.as_ref(), object)
            }
            DeviceKind::Pod => {
                let before = put(&mut self.pods, uid, version);
                let was_bound = before.is_some_and(|pod| pod["spec"]["nodeName"].is_string());
                if version.deleted || was_bound || !object["spec"]["nodeName"].is_string() {
                    return Ok(());
                }
                self.check_bound(object)
            }
        }
    }

    fn check_claim(&mut self, before: Option<&Value>, claim: &Value) -> Result<()> {
        let name = name_of(claim);
        let users: Vec<_> = items(&claim["status"]["reservedFor"]).map(|it| &it["uid"]).collect();
        let distinct: BTreeSet<_> = users.iter().map(|uid| text(uid)).collect();
        ensure(users.len() == distinct.len() && users.len() <= USERS_MAX, || {
            format!("claim {name} has {} users, {} different", users.len(), distinct.len())
        })?;
        let allocation = &claim["status"]["allocation"];
        if allocation.is_null() {
            return Ok(());
        }
        let is_new = before.is_none_or(|it| it["status"]["allocation"].is_null());
        let is_same = before.is_some_and(|it| it["status"]["allocation"] == *allocation);
        ensure(is_new || is_same, || format!("the devices of claim {name} were changed"))?;
        self.figures.allocations += usize::from(is_new);
        let finalizers = items(&claim["metadata"]["finalizers"]).filter_map(Value::as_str);
        let is_protected = finalizers.into_iter().any(|it| it.ends_with("/delete-protection"));
        ensure(is_protected || !is_new, || format!("claim {name} has devices and no finalizer"))?;
        if is_new { self.check_devices() } else { Ok(()) }
    }

    /// No device has too many claims.
    fn check_devices(&self) -> Result<()> {
        let held = self.held();
        for (device, claims) in &held {
            let of: Vec<&str> = claims.iter().map(|it| it.claim).collect();
            let shares: BTreeSet<_> = claims.iter().filter_map(|it| it.share).collect();
            let is_exclusive = claims.iter().any(|it| it.share.is_none());
            ensure(!is_exclusive || claims.len() == 1, || {
                format!("device {device:?} is in {} claims: {of:?}", claims.len())
            })?;
            ensure(is_exclusive || shares.len() == claims.len(), || {
                format!("device {device:?} has one share in several claims: {of:?}")
            })?;
            if !is_exclusive {
                self.check_capacity(device, claims)?;
            }
        }
        self.check_counters(held.keys())
    }

    /// Who has which device, without administrators.
    fn held(&self) -> BTreeMap<Device, Vec<Held<'_>>> {
        let mut held = BTreeMap::<Device, Vec<Held<'_>>>::new();
        for claim in self.claims.values() {
            let results = items(&claim["status"]["allocation"]["devices"]["results"]);
            for result in results.filter(|it| it["adminAccess"] != true) {
                let device = device_of(&result["driver"], &result["pool"], &result["device"]);
                held.entry(device).or_default().push(Held {
                    claim: claim["metadata"]["name"].as_str().unwrap_or_default(),
                    share: result["shareID"].as_str(),
                    consumed: &result["consumedCapacity"],
                });
            }
        }
        held
    }

    fn check_capacity(&self, device: &Device, claims: &[Held<'_>]) -> Result<()> {
        let Some(published) = self.published(device) else { return Ok(()) };
        for (name, capacity) in fields(&published["capacity"]) {
            let consumed = claims.iter().map(|it| amount(&it.consumed[name]));
            let consumed = consumed.sum::<Result<i128>>()?;
            let there_is = amount(&capacity["value"])?;
            ensure(consumed <= there_is, || {
                format!("{consumed} of {there_is} thousandths of {name} of {device:?} are consumed")
            })?;
        }
        Ok(())
    }

    /// Whatever devices of a pool consume together is there.
    fn check_counters<'a>(&self, held: impl Iterator<Item = &'a Device>) -> Result<()> {
        let mut consumed = BTreeMap::<[String; 4], i128>::new();
        for device in held {
            let Some(published) = self.published(device) else { continue };
            for set in items(&published["consumesCounters"]) {
                for (counter, value) in fields(&set["counters"]) {
                    let (driver, pool) = (device.0.clone(), device.1.clone());
                    let key = [driver, pool, text(&set["counterSet"]), counter.clone()];
                    *consumed.entry(key).or_default() += amount(&value["value"])?;
                }
            }
        }
        for ([driver, pool, set, counter], consumed) in consumed {
            let slices = self.slices_of(&driver, &pool);
            let sets = slices.flat_map(|slice| items(&slice["spec"]["sharedCounters"]));
            let of_set = sets.filter(|it| it["name"] == *set).map(|it| &it["counters"][&counter]);
            let there_is = of_set.map(|it| amount(&it["value"])).sum::<Result<i128>>()?;
            ensure(consumed <= there_is, || {
                format!(
                    "{consumed} of {there_is} thousandths of {set}/{counter} of {driver}/{pool} are consumed"
                )
            })?;
        }
        Ok(())
    }

    /// A Pod that has just been bound has its devices, and can use them on its node.
    fn check_bound(&mut self, pod: &Value) -> Result<()> {
        let (name, node) = (name_of(pod), text(&pod["spec"]["nodeName"]));
        let claims = claim_names(pod);
        self.figures.bindings += usize::from(!claims.is_empty());
        for claim in claims {
            let problem = |what: &str| format!("Pod {name} is bound, and its claim {claim} {what}");
            let found = self.claims.values().find(|it| {
                it["metadata"]["name"] == *claim
                    && it["metadata"]["namespace"] == pod["metadata"]["namespace"]
            });
            let Some(found) = found else { return Err(Error::Violated(problem("is not there"))) };
            let allocation = &found["status"]["allocation"];
            ensure(!allocation.is_null(), || problem("has no devices"))?;
            let mut users = items(&found["status"]["reservedFor"]);
            let is_user = users.any(|it| it["uid"] == pod["metadata"]["uid"]);
            ensure(is_user, || problem("is not reserved for it"))?;
            ensure(reaches(&allocation["nodeSelector"], &node), || {
                problem(&format!("cannot be used on {node}"))
            })?;
        }
        Ok(())
    }

    /// The slices of the pool's last generation.
    fn slices_of(&self, driver: &str, pool: &str) -> impl Iterator<Item = &Value> {
        let of_pool = |slice: &&Value| {
            slice["spec"]["driver"] == *driver && slice["spec"]["pool"]["name"] == *pool
        };
        let generation = |slice: &Value| slice["spec"]["pool"]["generation"].as_i64();
        let newest = self.slices.values().filter(of_pool).filter_map(generation).max();
        let slices: Vec<&Value> = self.slices.values().filter(of_pool).collect();
        slices.into_iter().filter(move |slice| generation(slice) == newest)
    }

    fn published(&self, (driver, pool, name): &Device) -> Option<&Value> {
        let mut devices =
            self.slices_of(driver, pool).flat_map(|slice| items(&slice["spec"]["devices"]));
        devices.find(|device| device["name"] == **name)
    }
}

/// Claims that have devices for Pods that are over, or for none: nobody will ever free these. To be asked when everything
/// is quiet, of all claims and Pods there are.
pub fn forgotten_claims(claims: &[Value], pods: &[Value]) -> Vec<String> {
    let is_alive = |uid: &Value| {
        let pod = pods.iter().find(|pod| pod["metadata"]["uid"] == *uid);
        pod.is_some_and(|pod| {
            !matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
        })
    };
    let is_forgotten = |claim: &&Value| {
        let mut users = items(&claim["status"]["reservedFor"]).peekable();
        let has_devices = !claim["status"]["allocation"].is_null();
        has_devices && (users.peek().is_none() || users.any(|user| !is_alive(&user["uid"])))
    };
    claims.iter().filter(is_forgotten).map(name_of).collect()
}

/// Of the claims that a Pod uses.
fn claim_names(pod: &Value) -> BTreeSet<String> {
    let named = items(&pod["spec"]["resourceClaims"]).map(|it| &it["resourceClaimName"]);
    let made = items(&pod["status"]["resourceClaimStatuses"]).map(|it| &it["resourceClaimName"]);
    named.chain(made).filter_map(Value::as_str).map(str::to_owned).collect()
}

/// What the scheduler writes are names of nodes; other requirements are left to those who wrote them.
fn reaches(selector: &Value, node: &str) -> bool {
    let names = |term: &Value| -> Vec<Value> {
        let of_name = items(&term["matchFields"]).filter(|it| it["key"] == "metadata.name");
        of_name.cloned().collect()
    };
    let fits = |term: &Value| {
        names(term).iter().all(|it| items(&it["values"]).any(|value| *value == *node))
    };
    selector.is_null() || items(&selector["nodeSelectorTerms"]).any(fits)
}

fn put(objects: &mut BTreeMap<String, Value>, uid: String, version: &Version) -> Option<Value> {
    if version.deleted { objects.remove(&uid) } else { objects.insert(uid, version.object.clone()) }
}

fn device_of(driver: &Value, pool: &Value, device: &Value) -> Device {
    (text(driver), text(pool), text(device))
}

fn name_of(object: &Value) -> String {
    let metadata = &object["metadata"];
    format!("{}/{}", text(&metadata["namespace"]), text(&metadata["name"]))
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// In thousandths; none is zero.
fn amount(value: &Value) -> Result<i128> {
    match value.as_str() {
        None => Ok(0),
        Some(quantity) => milli(quantity)
            .ok_or_else(|| Error::malformed("reading a quantity of a device", quantity)),
    }
}

#[cfg(test)]
mod tests;
