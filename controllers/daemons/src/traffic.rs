//! Names that corrd gives to classes of traffic and to surroundings. Both lists are closed: a name that
//! corrd does not know is an error of the request, not a wish to be guessed.

use serde::{Deserialize, Serialize};

use crate::named::named;

named! {
    /// Which paths get what a device has beyond the floors, lowest first. Floors are met in every class.
    #[derive(
        Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
    )]
    #[serde(rename_all = "kebab-case")]
    pub enum PriorityClass {
        Bronze = "bronze",
        #[default]
        Silver = "silver",
        Gold = "gold",
        Platinum = "platinum",
    }
}

named! {
    /// Where a device stands: how warm it is, and how much that changes.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum AmbientProfile {
        #[default]
        LabDefault = "lab-default",
        ColdAisle = "cold-aisle",
        HotAisle = "hot-aisle",
        Outdoor = "outdoor",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_wire() {
        for class in PriorityClass::ALL {
            assert_eq!(serde_json::to_value(class).unwrap(), class.as_str());
            assert_eq!(PriorityClass::from_name(class.as_str()), Some(class));
        }
        for profile in AmbientProfile::ALL {
            assert_eq!(serde_json::to_value(profile).unwrap(), profile.as_str());
            assert_eq!(AmbientProfile::from_name(profile.as_str()), Some(profile));
        }
        assert_eq!(PriorityClass::from_name("Gold"), None);
        let unknown = serde_json::from_str::<PriorityClass>("\"banana\"").unwrap_err();
        assert!(
            unknown.to_string().contains("`bronze`, `silver`, `gold`, `platinum`"),
            "{unknown}"
        );
    }
}
