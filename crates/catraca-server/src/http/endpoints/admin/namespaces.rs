//! `GET /v1/namespaces`: the namespaces that exist.

use schemars::JsonSchema;
use serde::Serialize;

use super::{ApiRequest, ApiResult, to_json};

/// The namespaces that exist, or the one of the caller's key.
#[derive(Serialize, JsonSchema)]
pub struct NamespaceList {
    #[schemars(example = ["default", "shop"])]
    namespaces: Vec<String>,
}

/// `GET /v1/namespaces`.
pub async fn list(request: &ApiRequest) -> ApiResult {
    let [] = request.query_params([])?;
    let namespaces = match request.caller.bound_namespace() {
        Some(own) => vec![own.to_owned()],
        None => {
            let configured = request.context().reloadable.load().process.namespaces();
            request.app().namespaces(configured).await?.into_iter().collect()
        }
    };
    to_json(&NamespaceList { namespaces })
}
