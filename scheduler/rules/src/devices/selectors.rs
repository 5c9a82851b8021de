//! Which devices a request means, by expressions of its class and its own.

use std::sync::Arc;

use model::{DeviceClass, DeviceSelector, DeviceType, ResourceClaim, SelectorVerdict, SubRequest};

use super::FatalDeviceError;

/// Evaluates expressions. It is asked often for the same, and best answers from a table.
pub trait Selectors {
    /// Of an expression that fails, the text begins with `CEL runtime error: ` or `CEL compile error: `.
    fn verdict(&self, expression: &Arc<str>, device: &Arc<DeviceType>) -> SelectorVerdict;
}

/// A selector of a later version. Those of requests are refused before any device is looked at.
const UNKNOWN: &str = "CEL expression empty (unsupported selector type?)";

/// Whether the class and the request both mean the device. One expression that fails for one device fails the Pod.
pub(super) fn matches(
    selectors: &dyn Selectors,
    claim: &ResourceClaim,
    request: &SubRequest,
    class: &DeviceClass,
    device: &Arc<DeviceType>,
) -> Result<bool, FatalDeviceError> {
    let of_class = class.selectors.iter().enumerate().map(|numbered| (true, numbered));
    let of_request = request.selectors.iter().enumerate().map(|numbered| (false, numbered));
    for (is_of_class, (index, selector)) in of_class.chain(of_request) {
        let verdict = match selector {
            DeviceSelector::Cel(expression) => selectors.verdict(expression, device),
            DeviceSelector::Unknown => SelectorVerdict::Fails(UNKNOWN.into()),
        };
        match verdict {
            SelectorVerdict::Matches => {}
            SelectorVerdict::DoesNotMatch => return Ok(false),
            SelectorVerdict::Fails(why) if is_of_class => {
                let class = class.name.clone();
                return Err(FatalDeviceError::ClassSelectorFails { class, index, why });
            }
            SelectorVerdict::Fails(why) => {
                let claim = claim.key.clone();
                return Err(FatalDeviceError::SelectorFails { claim, index, why });
            }
        }
    }
    Ok(true)
}
