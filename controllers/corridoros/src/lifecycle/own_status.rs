//! Pure: the part of a status that the controllers write, apart from the driver's.

use crds::{PodUse, condition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::object::HasStatus as _;

use super::allocated_kind::AllocatedKind;

/// The fields that the driver writes. Of the conditions, only some are the driver's.
pub(crate) struct DriverFields<'a> {
    pub in_use: &'a mut Option<i64>,
    pub in_use_by: &'a mut Vec<PodUse>,
    pub conditions: &'a mut Vec<Condition>,
}

fn is_own(condition: &Condition) -> bool {
    condition::OF_CONTROLLERS.contains(&condition.type_.as_str())
}

/// The part of the status that the controllers write.
pub(crate) fn own_status<K: AllocatedKind>(object: &K::Object) -> K::Status {
    let mut own = object.status().cloned().unwrap_or_default();
    let of_driver = K::driver_fields(&mut own);
    (*of_driver.in_use, *of_driver.in_use_by) = (None, Vec::new());
    of_driver.conditions.retain(is_own);
    own
}

/// The object with this in the place of that part.
pub(crate) fn with_own_status<K: AllocatedKind>(object: &K::Object, own: &K::Status) -> K::Object {
    let mut shown = object.status().cloned().unwrap_or_default();
    let mut restored = own.clone();
    let (from, to) = (K::driver_fields(&mut shown), K::driver_fields(&mut restored));
    (*to.in_use, *to.in_use_by) = (*from.in_use, from.in_use_by.split_off(0));
    to.conditions.extend(from.conditions.drain(..).filter(|it| !is_own(it)));
    let mut object = object.clone();
    *object.status_mut() = Some(restored);
    object
}
