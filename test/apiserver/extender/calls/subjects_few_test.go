//go:build linux && !releases

package calls

var subjects = []subject{{release: "v1.24.3"}}
