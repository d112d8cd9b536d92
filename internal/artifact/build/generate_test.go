package build

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/golden"
	"github.com/pmk-sched/pmk-sched/versions"
)

func TestMainOfTheScheduler(t *testing.T) {
	for name, test := range map[string]struct {
		release string
		plugins bool
	}{
		"executed-without-json": {"v1.21.3", false},
		"executed":              {"v1.22.2", false},
		"executed-plugins":      {"v1.22.2", true},
		"cli":                   {"v1.24.3", false},
		"cli-plugins":           {"v1.37.1", true},
	} {
		t.Run(name, func(t *testing.T) {
			release := mustRelease(t, test.release)
			rules, err := versions.Select(release)
			if err != nil {
				t.Fatal(err)
			}
			text, err := generateMain(release, rules, test.plugins)
			if err != nil {
				t.Fatal(err)
			}
			golden.Equal(t, "testdata/golden/main-"+name+".go.txt", text)
		})
	}
}

func TestModuleCarriesPinsSumsAndGodebugOfTheRelease(t *testing.T) {
	s := source{
		Path: kubernetes, Version: "v1.32.2", GoDirective: "1.23.0",
		Godebug: []string{"default=go1.23", "winsymlink=0"},
		Pins: []pin{{"example.com/b", "v1.0.0", "example.com/b", "v1.0.1"},
			{"example.com/a", "", "example.com/fork", "v2.0.0+incompatible"}},
		Staging: []string{"k8s.io/client-go", "k8s.io/api"}, Unused: []string{"k8s.io/sample-controller"},
		GoSum: "example.com/b v1.0.1 h1:b=\nexample.com/a v1.0.0 h1:a=\n",
	}
	files, err := generateModule(s, "v0.32.2", "k8s.io/api v0.32.2 h1:api=\nexample.com/b v1.0.1 h1:b=\n", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/golden/go.mod.txt", files["go.mod"])
	golden.Equal(t, "testdata/golden/go.sum.txt", files["go.sum"])
}

func TestVersionOfGoIsReadFromTheRelease(t *testing.T) {
	const dependencies = "dependencies:\n- name: \"etcd\"\n  version: 3.5.3\n- name: \"golang: upstream version\"\n  " +
		"version: 1.18.3\n"
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		".go-version": {map[string]string{".go-version": "1.26.5\n", "build/dependencies.yaml": dependencies}, "1.26.5"},
		"dependencies.yaml before the build image": {map[string]string{"build/dependencies.yaml": dependencies,
			"build/build-image/cross/VERSION": "v1.24.0-go1.18.1-bullseye.0\n"}, "1.18.3"},
		"build image named as Go": {
			map[string]string{"build/build-image/cross/VERSION": "v1.15.15-legacy-1\n"}, "1.15.15"},
		"build image with suffix": {map[string]string{"build/dependencies.yaml": "- nothing\n",
			"build/build-image/cross/VERSION": "v1.24.0-go1.18.3-bullseye.0\n"}, "1.18.3"},
		"a file that says rubbish": {map[string]string{".go-version": "latest\n"}, ""},
		"none":                     {nil, ""},
	} {
		dir := t.TempDir()
		for file, data := range test.files {
			write(t, filepath.Join(dir, filepath.FromSlash(file)), data)
		}
		got, err := namedGo(dir)
		if err != nil || got != test.want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, test.want)
		}
	}
}

func TestFlagsOfARelease(t *testing.T) {
	rules := func(minor int) versions.Rules {
		rules, err := versions.Select(versions.Release{Major: 1, Minor: minor})
		if err != nil {
			t.Fatal(err)
		}
		return rules
	}
	flags := linkFlags(versions.Release{Major: 1, Minor: 37, Patch: 0, PreRelease: "rc.1"}, rules(37),
		moduleStamp("2026-08-01T00:00:00Z"))
	for _, want := range []string{
		"-s -w -buildid= ",
		" -X k8s.io/component-base/version.gitVersion=v1.37.0-rc.1 ",
		" -X k8s.io/client-go/pkg/version.gitMinor=37 ",
		" -X k8s.io/client-go/pkg/version.buildDate=2026-08-01T00:00:00Z",
	} {
		if !strings.Contains(flags, want) {
			t.Errorf("%q is not in %q", want, flags)
		}
	}
	for minor, want := range map[int]string{20: "selinux,notest", 33: "selinux,notest", 34: "selinux,notest,grpcnotrace"} {
		if got := buildTags(rules(minor)); got != want {
			t.Errorf("tags of 1.%d: got %q, want %q", minor, got, want)
		}
	}
	for version, want := range map[string]bool{"1.15.15": false, "1.17.13": false, "1.18": true, "1.18.10": true,
		"1.26rc1": true} {
		if got := stampsVersionControl(version); got != want {
			t.Errorf("-buildvcs with Go %s: got %v, want %v", version, got, want)
		}
	}
}

func TestPatchesToTryInsteadOfOneThatDoesNotDownload(t *testing.T) {
	for named, want := range map[string]string{
		"1.18.3": "1.18.10", "1.20.7": "1.20.14", "1.26.5": "1.26.11 1.26.10 1.26.9 1.26.8 1.26.7 1.26.6",
		"1.27rc1": "1.27.6 1.27.5 1.27.4 1.27.3 1.27.2 1.27.1",
	} {
		if got := strings.Join(unlisted(named), " "); got != want {
			t.Errorf("%s: got %s, want %s", named, got, want)
		}
	}
}

func TestCausesAreFoundInTheOutputOfCommands(t *testing.T) {
	for output, want := range map[string]Cause{
		"write $WORK/b/_pkg_.a: no space left on device":                                                                    CauseDiskFull,
		"# runtime\ncompile: writing output: write $WORK/b.a: disk quota exceeded":                                          CauseDiskFull,
		"verifying k8s.io/api@v0.24.3: write /m/cache.tmp: no space left on device":                                         CauseDiskFull,
		"go: exec go1.18.10: no such file or directory":                                                                     CauseNoLibrary,
		"go: download go1.20.7 for linux/amd64: toolchain not available":                                                    CauseToolchain,
		"go: golang.org/toolchain@v0.0.1-go1.18.3.linux-amd64: verifying module: checksum database disabled by GOSUMDB=off": CauseToolchain,
		"verifying k8s.io/api@v0.24.3: checksum mismatch\n\tdownloaded: h1:a\n\tgo.sum: h1:b\n\nSECURITY ERROR":             CauseChecksum,
		"k8s.io/api@v0.24.3: reading http://localhost/k8s.io/api/@v/v0.24.3.zip: 503 Service Unavailable":                   CauseProxy,
		"k8s.io/api@v0.24.3: Get \"http://localhost/x\": dial tcp: lookup localhost on 1.1.1.1:53: no such host":            CauseNoNetwork,
		"k8s.io/api@v0.24.3: Get \"http://localhost/x\": net/http: TLS handshake timeout":                                   CauseNoNetwork,
		"k8s.io/api@v0.24.3: module lookup disabled by GOPROXY=off":                                                         CauseNoNetwork,
		"go: k8s.io/api@v0.24.3: reading http://localhost/k8s.io/api/@v/v0.24.3.mod: 404 Not Found\n\tserver response: no":  CauseModuleMissing,
		"go: k8s.io/api@v0.24.3: invalid version: unknown revision v0.24.3":                                                 CauseModuleMissing,
		"# k8s.io/kubernetes/pkg/scheduler\n../m/k8s.io/kubernetes@v1.24.3/pkg/scheduler/a.go:12:3: undefined: b":           CauseCompile,
		"main.go:4:2: package k8s.io/none is not in std":                                                                    CauseCompile,
		"signal: killed": CauseUnknown,
	} {
		failed := diagnose("compile it", output, errors.New("exit status 1"))
		if failed.Cause != want {
			t.Errorf("%q: got %s, want %s", output, failed.Cause, want)
		}
		if failed.Message == "" || want != CauseUnknown && failed.Hint() == "" {
			t.Errorf("%q: message %q, hint %q", output, failed.Message, failed.Hint())
		}
	}
}

func TestPasswordsAreRedacted(t *testing.T) {
	got := redact(`reading https://me:secret@localhost:8080/x/@v/list and ssh://git@localhost/y: k8s.io/api@v0.24.3`)
	want := `reading https://localhost:8080/x/@v/list and ssh://localhost/y: k8s.io/api@v0.24.3`
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOnlyTheEndOfLongOutputIsKept(t *testing.T) {
	w := &tailWriter{log: mustJob(t, Environment{}).goTool.log, limit: 3}
	for _, part := range []string{"one\ntwo\nth", "ree\nfo", "ur\nfive"} {
		if _, err := w.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.String(); got != "three\nfour\nfive" {
		t.Errorf("got %q", got)
	}
}
