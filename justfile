# The habits of this project. `just` alone lists them.

default:
    @just --list

# Format and lint, warnings denied.
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings

# Everything that needs nothing but Rust.
test:
    cargo test

# The scheduler against a real etcd and kube-apiserver, built on first use.
e2e:
    cargo test -p e2e

# Its core on the oldest release of Kubernetes that is supported.
e2e-oldest:
    CORRIDOR_E2E_KUBERNETES=oldest cargo test -p e2e --test scheduling --test admission --test install --test completed_pods --test replicas

# The story, in memory.
demo *args:
    cargo run --release --bin corridor-scheduler -- demo {{args}}

# Regenerate config/crd/ from the types.
crds:
    cargo run -p crds --bin crdgen

# Write config/deploy/operator.yaml anew from the folders that it is made of.
operator:
    (echo "# Made by \`just operator\` from config/deploy/operator. Do not edit."; \
        kubectl kustomize config/deploy/operator) > config/deploy/operator.yaml

# Write the tables of docs/metrics.md and docs/configuration.md anew from the program.
reference:
    CORRIDOR_WRITE_REFERENCE=1 cargo test --package api committed
    CORRIDOR_WRITE_REFERENCE=1 cargo test --package corridor-scheduler reference::

# Licences, bans and sources of dependencies (cargo install cargo-deny).
deny:
    cargo deny check licenses bans sources

# What CI runs.
ci:
    bash .ci/run
