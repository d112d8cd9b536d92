//go:build matrix

package matrix

import (
	"debug/buildinfo"
	goversion "go/version"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"github.com/pmk-sched/pmk-sched/test/internal/schedulers"
)

// linked compares the modules that the scheduler was linked from with the release's own go.mod:
// modules in both must have the version that upstream builds with.
func linked(t *testing.T, s *schedulers.Scheduler) {
	t.Helper()
	info, err := buildinfo.ReadFile(s.Path)
	if err != nil {
		t.Error(err)
		return
	}
	if got := strings.TrimPrefix(info.GoVersion, "go"); got != s.Info.Go {
		t.Errorf("compiled with Go %s, not %s", got, s.Info.Go)
	}
	debugSettings(t, s, info)
	wanted := upstream(t, s)
	for _, m := range s.Info.Updated {
		wanted[m.Path] = m.Version
	}
	compared := 0
	for _, dep := range info.Deps {
		version := dep.Version
		if dep.Replace != nil {
			version = dep.Replace.Version
		}
		want, named := wanted[dep.Path]
		if dep.Path == "k8s.io/kubernetes" {
			want, named = s.Release.String(), true
		}
		if !named {
			continue
		}
		if compared++; version != want {
			t.Errorf("module %s is linked at %s; the release's go.mod has %s", dep.Path, version, want)
		}
	}
	if compared < 50 {
		t.Errorf("only %d modules were compared, of %d that are linked", compared, len(info.Deps))
	}
}

// debugSettings compares settings of GODEBUG in the scheduler with the release's: their defaults
// depend on the go line of the release, whatever version of Go compiles it.
func debugSettings(t *testing.T, s *schedulers.Scheduler, info *debug.BuildInfo) {
	t.Helper()
	if goversion.Compare("go"+s.Info.Go, "go1.26") < 0 {
		return // it does not have all of the settings
	}
	settings := ","
	for _, setting := range info.Settings {
		if setting.Key == "DefaultGODEBUG" {
			settings += setting.Value + ","
		}
	}
	for setting, changed := range map[string]string{
		"panicnil=1": "1.21", "httpmuxgo121=1": "1.22", "httpservecontentkeepheaders=1": "1.23", "rsa1024min=0": "1.24",
		"tlssha1=1": "1.25", "urlstrictcolons=0": "1.26",
	} {
		former := goversion.Compare("go"+s.Info.GoDirective, "go"+changed) < 0
		if got := strings.Contains(settings, ","+setting+","); got != former {
			t.Errorf("go line %s: %s is a default of GODEBUG: %v, want %v", s.Info.GoDirective, setting, got, former)
		}
	}
}

// upstream returns the versions that the release's go.mod requires, as its replace directives
// change them. Modules that it replaces by a directory below staging are published under the
// release's own number.
func upstream(t *testing.T, s *schedulers.Scheduler) map[string]string {
	t.Helper()
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	version, err := module.EscapeVersion(s.Release.String())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(strings.TrimSpace(string(cache)), "cache", "download", "k8s.io", "kubernetes", "@v",
		version+".mod")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("read the go.mod of the release, which its build has left in the module cache: %v", err)
	}
	file, err := modfile.Parse(path, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, r := range file.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	for _, r := range file.Replace {
		switch {
		case strings.HasPrefix(r.New.Path, "./staging/"):
			versions[r.Old.Path] = s.Release.Staging()
		case r.New.Version != "" && (r.Old.Version == "" || r.Old.Version == versions[r.Old.Path]):
			versions[r.Old.Path] = r.New.Version
		}
	}
	// From 1.30 on a workspace (go.work) replaces those directives, and the required version is a
	// placeholder.
	for path, version := range versions {
		if strings.HasPrefix(path, "k8s.io/") && version == "v0.0.0" {
			versions[path] = s.Release.Staging()
		}
	}
	return versions
}
