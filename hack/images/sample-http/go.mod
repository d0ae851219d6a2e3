module slipway.dev/hack/images/sample-http

go 1.24
