//! The account of this process at the API server.

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::PostParams;
use kube::{Api, Client};
use tracing::{debug, warn};

/// The only account whose writes the policies of `config/admission/` let pass.
const EXPECTED: &str = "system:serviceaccount:corridor-system:corridor-operator";

/// Logs a warning if it is another account: with the policies installed nothing could be written, and each
/// refusal alone would be a puzzle.
pub async fn look(client: Client) {
    let reviews: Api<SelfSubjectReview> = Api::all(client);
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await;
    let user = match review {
        Ok(review) => review.status.and_then(|status| status.user_info).and_then(|it| it.username),
        // Old or simulated API servers do not know the question.
        Err(error) => {
            debug!(%error, "the API server does not say who we are");
            return;
        }
    };
    match user {
        Some(user) if user != EXPECTED => warn!(
            user,
            expected = EXPECTED,
            "running as somebody else: where config/admission is installed, what we write is refused"
        ),
        _ => {}
    }
}
