module slipway.dev/hack/images/base/static

go 1.24
