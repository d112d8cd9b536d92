package build

import (
	"errors"
	"strings"
	"testing"
)

func TestModuleIsBuiltAndCached(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	o := ModuleOptions{
		Module: "example.com/server/v3", Version: "v3.6.8",
		Packages:    []Program{{Name: "serve", Package: "example.com/server/v3"}},
		Environment: Environment{CacheDir: t.TempDir(), Env: p.environment(t)},
	}
	for _, cached := range []bool{false, true} {
		result, err := Module(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if got := output(t, result.Binaries[0].Path); got != "server with third v1.0.0\n" || result.Cached != cached {
			t.Errorf("got %q, cached %v", got, result.Cached)
		}
	}
	mustBeEmpty(t, newCache(o.CacheDir).temporary())

	o.Version = "v3.9.9"
	_, err := Module(t.Context(), o)
	var failed *Error
	if !errors.As(err, &failed) || failed.Cause != CauseModuleMissing ||
		!strings.Contains(err.Error(), "example.com/server/v3 v3.9.9") {
		t.Errorf("unknown version: got %v", err)
	}
}

func TestVersionOfGoForAModule(t *testing.T) {
	for name, test := range map[string]struct {
		source source
		want   string
	}{
		"no go line":             {source{}, "1.24.5"},
		"own Go is new enough":   {source{GoDirective: "1.24.5", Go: "1.25.1"}, "1.24.5"},
		"module names toolchain": {source{GoDirective: "1.25.0", Go: "1.25.4"}, "1.25.4"},
		"go line alone":          {source{GoDirective: "1.25.3"}, "1.25.3"},
		"go line without patch":  {source{GoDirective: "1.25"}, "1.25.0"},
	} {
		j := mustJob(t, Environment{})
		j.goTool.found = &goCommand{version: "1.24.5"}
		if got, err := j.goTool.versionFor(t.Context(), test.source); err != nil || got != test.want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, test.want)
		}
	}
}
