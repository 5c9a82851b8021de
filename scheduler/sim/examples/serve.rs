//! Serves the model until Ctrl-C, for a look with kubectl:
//!
//! ```text
//! cargo run -p sim --example serve -- 127.0.0.1:8001 my-crd.yaml > kubeconfig
//! kubectl --kubeconfig kubeconfig get namespaces
//! ```

use std::error::Error;

use sim::ApiServer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let addr = args.next().unwrap_or_else(|| "127.0.0.1:0".to_owned()).parse()?;
    let mut custom_resources = Vec::new();
    for file in args {
        custom_resources.push(serde_saphyr::from_str(&std::fs::read_to_string(file)?)?);
    }
    let server = ApiServer::start(addr, custom_resources).await?;
    print!("{}", server.kubeconfig());
    tokio::signal::ctrl_c().await?;
    server.stop().await;
    Ok(())
}
