# Every command of this repository. `make` alone lists them.
.DEFAULT_GOAL := help
.PHONY: help run assets demo test test-fast docs screenshots weigh lint deny bench eval day functions routes

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Build and start the service on http://localhost:3000, data in .data/
	@scripts/run.sh

demo: ## Build and start the service with a demo history, data in .demo/
	@scripts/demo.sh $(ARGS)

assets: ## Fetch what is compiled in but not ours: the trace viewer
	@scripts/assets.sh

test: ## Install what the tests need and run all of them
	@scripts/test.sh

test-fast: ## Test what changed, in about three minutes, on SQLite; ARGS=<commit> to compare with
	@scripts/test-fast.sh $(ARGS)

docs: ## Check the documents and run their examples; needs a build of service and reporter
	@scripts/docs.sh

screenshots: ## Picture of every page, both themes and two widths, into target/screenshots/
	@scripts/screenshots.sh $(ARGS)

weigh: ## Bytes, jumps and interaction times of the pages, in a browser
	@scripts/weigh.sh

lint: ## Formatting, clippy, links of the documentation, dependency rules
	@scripts/lint.sh

deny: ## Licences, sources and bans of the dependencies (cargo-deny)
	@scripts/deny.sh

bench: ## Measure an optimised build; ARGS="--help" lists the parts
	@scripts/bench.sh $(ARGS)

eval: ## Measure the methods that judge and group results on labelled data
	@scripts/eval.sh $(ARGS)

day: ## A day of CI through the functions, compared with the local runner; needs a build
	@scripts/day.sh

functions: ## Build the deployable functions into target/functions/
	@scripts/functions.sh

routes: ## Write infra/routes.json, infra/mcp-tools.json and the events of infra/template.yaml from the tables in the code
	UPDATE_ROUTES=1 cargo test --locked --workspace --test functions routes::
	UPDATE_ROUTES=1 cargo test --locked --package callboard-fn-mcp --lib the_document_says
