package image

import (
	"strings"
	"testing"
)

func TestRepositoriesAreComparedByComponent(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0", 64)
	for _, c := range []struct {
		prefix, image string
		want          bool
	}{
		{"r.example.com/team", "r.example.com/team:v1", true},
		{"r.example.com/team", "r.example.com/team/s:v1", true},
		{"r.example.com/team", "r.example.com/team/deep/s:v1" + digest, true},
		{"r.example.com/team", "r.example.com/team/s" + digest, true},
		{"r.example.com/team", "r.example.com/team/s", true},
		{"r.example.com/team", "r.example.com/team-b/s:v1", false},
		{"r.example.com/team", "r.example.com/teams:v1", false},
		{"r.example.com/team", "r.example.com/other/team/s:v1", false},
		{"r.example.com/team", "r.example.com:443/team/s:v1", false},
		{"r.example.com/team", "evil.com/r.example.com/team/s:v1", false},
		{"r.example.com/team/s", "r.example.com/team:v1", false},
		{"r.example.com", "r.example.com/any/s:v1", true},
		{"r.example.com", "r.example.com.evil.com/any/s:v1", false},
		{"r.example.com", "r.example.com:5000/any/s:v1", false},
		{"r.example.com:5000", "r.example.com:5000/any/s:v1", true},
		{"localhost", "localhost/s:v1", true},
		{"localhost", "localhost:5000/s:v1", false},
		{"docker.io/library", "busybox", true},
		{"docker.io/library", "busybox:1.37" + digest, true},
		{"docker.io/library", "docker.io/busybox:1.37", true},
		{"docker.io/library", "index.docker.io/library/busybox:1.37", true},
		{"docker.io/library", "team/busybox:1.37", false},
		{"docker.io/library", "library.evil.com/busybox", false},
		{"docker.io/team", "team/busybox", true},
		{"index.docker.io/team", "team/busybox", true},
		{"docker.io", "busybox", true},
		{"docker.io", "docker.io.evil.com/busybox", false},
	} {
		prefix, err := ParsePrefix(c.prefix)
		if err != nil {
			t.Fatal(err)
		}
		got, err := InRepositories(c.image, []string{"other.example.com", prefix})
		if err != nil || got != c.want {
			t.Errorf("%s in %s: got %t, %v", c.image, c.prefix, got, err)
		}
	}
}

func TestNamesThatARegistryCouldReadAsOthersAreRefused(t *testing.T) {
	for _, image := range []string{
		"r.example.com/team/../evil/s:v1", "r.example.com/team/./s", "r.example.com/team//s:v1",
		"r.example.com/team/%2e%2e/evil:v1", "R.EXAMPLE.COM/TEAM/s:v1", "r.example.com/team/s:v1@sha256:12", "",
	} {
		if ok, err := InRepositories(image, []string{"r.example.com/team"}); ok || err == nil {
			t.Errorf("%s: got %t, %v", image, ok, err)
		}
	}
}

func TestPrefixesOfRepositories(t *testing.T) {
	for _, prefix := range []string{
		"", "team", "library/busybox", "r.example.com/", "r.example.com/team/", "r.example.com/a//b",
		"r.example.com/a/../b", "r.example.com/team:v1", "https://r.example.com", "r.example.com/*", "r.example.com/Team",
	} {
		if got, err := ParsePrefix(prefix); err == nil {
			t.Errorf("%q: got %q", prefix, got)
		}
	}
}
