//go:build linux && releases

package calls

var subjects = []subject{{release: "v1.22.2"}, {release: "v1.22.2", policy: true}, {release: "v1.24.3"}, {release: "v1.33.13"}, {release: "v1.37.1"}}
