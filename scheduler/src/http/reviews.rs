//! The API server's word on tokens and rights: TokenReview and SubjectAccessReview.

use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::access::{Action, Authority, User};

/// Reviews under way. A flood of bad tokens must not become a flood at the API server.
const REVIEWS_AT_ONCE_MAX: usize = 8;
/// For one review, with the wait for its turn. A scraper gives up after 10 s by itself.
const REVIEW_TIME_MAX: Duration = Duration::from_secs(5);

pub struct ApiServer {
    client: Client,
    turns: Semaphore,
}

impl ApiServer {
    pub fn new(client: Client) -> Self {
        Self { client, turns: Semaphore::new(REVIEWS_AT_ONCE_MAX) }
    }

    async fn review<T>(
        &self,
        kind: &str,
        asking: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, String> {
        let turn = async {
            // It is never closed.
            let _turn = self.turns.acquire().await;
            asking.await
        };
        match timeout(REVIEW_TIME_MAX, turn).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(kube::Error::Api(status))) if status.code == 403 => Err(format!(
                "the scheduler may not create a {kind}; apply config/rbac/: {}",
                status.message
            )),
            Ok(Err(error)) => Err(format!("the API server did not answer a {kind}: {error}")),
            Err(_) => Err(format!(
                "the API server did not answer a {kind} in {} s",
                REVIEW_TIME_MAX.as_secs()
            )),
        }
    }
}

impl Authority for ApiServer {
    async fn identify(&self, token: &str) -> Result<Option<User>, String> {
        let review = TokenReview {
            spec: TokenReviewSpec { token: token.to_owned(), audiences: None },
            ..TokenReview::default()
        };
        let reviews: Api<TokenReview> = Api::all(self.client.clone());
        let params = PostParams::default();
        let answer = self.review("TokenReview", reviews.create(&params, &review)).await?;
        let Some(status) = answer.status else { return Ok(None) };
        let is_known = status.authenticated == Some(true);
        Ok(status.user.filter(|_| is_known).and_then(user))
    }

    async fn permits(&self, user: &User, action: Action<'_>) -> Result<bool, String> {
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(user.name.clone()),
                uid: user.uid.clone(),
                groups: Some(user.groups.clone()),
                extra: Some(user.extra.clone()),
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some(action.path.to_owned()),
                    verb: Some(action.verb.to_owned()),
                }),
                resource_attributes: None,
            },
            ..SubjectAccessReview::default()
        };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let params = PostParams::default();
        let answer = self.review("SubjectAccessReview", reviews.create(&params, &review)).await?;
        // Both may be set by a chain of authorizers: a no is a no.
        Ok(answer.status.is_some_and(|status| status.allowed && status.denied != Some(true)))
    }
}

/// A user without a name counts as none: roles could not name it either.
fn user(info: UserInfo) -> Option<User> {
    let UserInfo { username, uid, groups, extra } = info;
    let name = username.filter(|name| !name.is_empty())?;
    let (groups, extra) = (groups.unwrap_or_default(), extra.unwrap_or_default());
    Some(User { name, uid, groups, extra })
}
