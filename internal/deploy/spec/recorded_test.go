package spec

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
)

// machine writes files that a command could read for whoever writes a record.
func machine(t *testing.T) (file func(name string) string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"id_ed25519":             "-----BEGIN OPENSSH PRIVATE KEY-----\nU0VDUkVU\n-----END OPENSSH PRIVATE KEY-----\n",
		"ca.crt":                 "-----BEGIN CERTIFICATE-----\nU0VDUkVU\n-----END CERTIFICATE-----\n",
		"cosign.pub":             "SECRET",
		"config.yaml":            "SECRET: 1\n",
		"busybox":                "SECRET",
		"layout/index.json":      "{}",
		"private@v1/go.mod":      "module example.com/private\n\ngo 1.21\n",
		"private@v1/secret.go":   "package private\n\nconst Name = \"SECRET\"\n",
		"kubernetes/.git/config": "SECRET",
	} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return func(name string) string { return filepath.Join(dir, name) }
}

// Whoever writes a revision writes its request. It is not the file of the user.
func TestARecordedRequestReadsNoFile(t *testing.T) {
	file := machine(t)
	cert := []byte("-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n")
	extender := func(tls v1alpha1.TLSConfig) []v1alpha1.Extender {
		return []v1alpha1.Extender{{Name: "x", URLPrefix: "https://x.example.com", FilterVerb: "f", TLSConfig: &tls}}
	}
	plugin := func(p v1alpha1.Plugin) []v1alpha1.Plugin { return []v1alpha1.Plugin{p} }
	for field, record := range map[string]func(*v1alpha1.CustomSchedulerSpec){
		"spec.extenders[0].tlsConfig.keyFile": func(s *v1alpha1.CustomSchedulerSpec) {
			s.Extenders = extender(v1alpha1.TLSConfig{CertFile: "c", CertData: cert, KeyFile: file("id_ed25519")})
		},
		"spec.extenders[0].tlsConfig.certFile": func(s *v1alpha1.CustomSchedulerSpec) {
			s.Extenders = extender(v1alpha1.TLSConfig{CertFile: file("ca.crt"), KeyFile: "k", KeyData: []byte("k")})
		},
		"spec.extenders[0].tlsConfig.ca": func(s *v1alpha1.CustomSchedulerSpec) {
			s.Extenders = extender(v1alpha1.TLSConfig{CA: file("ca.crt")})
		},
		"spec.configuration.file": func(s *v1alpha1.CustomSchedulerSpec) { s.Configuration.File = file("config.yaml") },
		"spec.image.requireSignature": func(s *v1alpha1.CustomSchedulerSpec) {
			s.Image.RequireSignature = file("cosign.pub")
		},
		"spec.source.plugins[0].path": func(s *v1alpha1.CustomSchedulerSpec) {
			s.Source.Plugins = plugin(v1alpha1.Plugin{Path: file("private@v1")})
		},
		"spec.source.plugins[0]": func(s *v1alpha1.CustomSchedulerSpec) {
			s.Source.Plugins = plugin(v1alpha1.Plugin{Module: file("private@v1")})
		},
		"spec.source.from": func(s *v1alpha1.CustomSchedulerSpec) { s.Source.From = file("kubernetes") },
		"spec.image.base":  func(s *v1alpha1.CustomSchedulerSpec) { s.Image.Base = file("layout") },
		"spec.image.busybox": func(s *v1alpha1.CustomSchedulerSpec) {
			s.Image.Busybox = file("busybox")
		},
	} {
		t.Run(field, func(t *testing.T) {
			recorded := &v1alpha1.CustomScheduler{}
			recorded.Name, recorded.Spec.Image.Repository = "n", "registry.example.com/s"
			record(&recorded.Spec)
			err := buildAgain(t, Flags{Name: "n", CacheDir: t.TempDir()}, recorded)
			if err == nil || !strings.Contains(err.Error(), field) || !problem.IsInvalid(err) ||
				strings.Contains(err.Error(), "SECRET") {
				t.Errorf("got %v, want an error about %s", err, field)
			}
			hints := strings.Join(problem.Hints(err), "\n")
			if err != nil && !strings.Contains(hints, "-f ") && !strings.Contains(hints, "the field path") {
				t.Errorf("hints: %s", hints)
			}
			own := filepath.Join(t.TempDir(), "pmk-sched.yaml")
			if err := os.WriteFile(own, []byte("apiVersion: pmk-sched.io/v1alpha1\nkind: CustomScheduler\n"+
				"metadata: {name: n}\nspec: {image: {repository: registry.example.com/s}}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := buildAgain(t, Flags{File: own, CacheDir: t.TempDir()}, recorded); err != nil {
				t.Errorf("with the file of the user: %v", err)
			}
		})
	}
}

// buildAgain does everything that a command does with a request.
func buildAgain(t *testing.T, f Flags, recorded *v1alpha1.CustomScheduler) error {
	t.Helper()
	s, err := Read(f)
	if err != nil {
		t.Fatal(err)
	}
	if s, err = s.Again(deploy.Installed{Request: recorded}, "v1.25.4", false); err != nil {
		return err
	}
	request, _, err := s.WithImage("localhost/s:v1").Scheduler()
	if err != nil {
		return err
	}
	if text := request.DeepCopy(); bytes.Contains([]byte(text.Spec.Configuration.Inline), []byte("SECRET")) {
		t.Errorf("the configuration of this machine is recorded")
	}
	_, err = s.Build(BuildFlags{Tag: "localhost/s:v1"})
	if err != nil {
		return err
	}
	_, err = s.Simulation(nil, nil)
	return err
}

// What this machine built for the deployed image was named by its user.
func TestAnUpgradeBuildsAsThisMachineBuiltTheDeployedImage(t *testing.T) {
	file := machine(t)
	recorded := &v1alpha1.CustomScheduler{}
	recorded.Spec.Image.Reference = "localhost/s:v1"
	for name, c := range map[string]struct {
		recorded, built v1alpha1.Recipe
		want            string
	}{
		"the same": {v1alpha1.Recipe{Busybox: file("busybox"), From: file("kubernetes")},
			v1alpha1.Recipe{Busybox: file("busybox"), From: file("kubernetes")}, ""},
		"the same layout": {v1alpha1.Recipe{Base: file("layout")}, v1alpha1.Recipe{Base: file("layout")}, ""},
		"another file": {v1alpha1.Recipe{Busybox: file("id_ed25519")},
			v1alpha1.Recipe{Busybox: file("busybox")}, "busybox"},
		"a file and a layout":  {v1alpha1.Recipe{Busybox: file("busybox")}, v1alpha1.Recipe{Base: file("busybox")}, "busybox"},
		"another repository":   {v1alpha1.Recipe{From: "https://x.example.com"}, v1alpha1.Recipe{From: file("kubernetes")}, "from"},
		"the name of an image": {v1alpha1.Recipe{Base: "registry.example.com/busybox:1"}, v1alpha1.Recipe{}, ""},
		"nothing":              {v1alpha1.Recipe{}, v1alpha1.Recipe{Busybox: file("busybox")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := deploy.Installed{Request: recorded.DeepCopy(), Built: &c.built}
			c.recorded.Complete(&before.Request.Spec)
			s, err := Read(Flags{Name: "n"})
			if err == nil {
				s, err = s.Again(before, "v1.25.4", false)
			}
			if err != nil {
				t.Fatal(err)
			}
			r, err := s.Build(BuildFlags{Tag: "localhost/s:v2"})
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if err == nil && (r.Source != c.recorded.From || r.Base.Busybox != c.recorded.Busybox) {
				t.Errorf("source %s, base %+v", r.Source, r.Base)
			}
			// Flags are the user's.
			flags := BuildFlags{Tag: "localhost/s:v2", Source: file("kubernetes"), Busybox: file("busybox")}
			if _, err := s.Build(flags); err != nil {
				t.Errorf("with flags: %v", err)
			}
		})
	}
}

// A name in the working directory is not taken for a name of an image that a record has.
func TestTheBaseOfARecordIsNotADirectory(t *testing.T) {
	file := machine(t)
	t.Chdir(filepath.Dir(file("layout")))
	recorded := &v1alpha1.CustomScheduler{}
	recorded.Spec.Image.Base = "layout"
	s, err := Read(Flags{Name: "n"})
	if err == nil {
		s, err = s.Again(deploy.Installed{Request: recorded}, "v1.25.4", false)
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Build(BuildFlags{Tag: "localhost/s:v2"})
	if err != nil || r.Base.Layout != "" || r.Base.Reference != "layout" || r.Recipe.Base != "layout" {
		t.Errorf("base %+v, recipe %s, %v", r.Base, r.Recipe.Base, err)
	}
}

func TestACertificateAndAKeyOfAnotherAreRefused(t *testing.T) {
	one, two := pair(t), pair(t)
	tls := &v1alpha1.TLSConfig{CertFile: "c", CertData: one.Cert, KeyFile: "k", KeyData: two.Key}
	recorded := &v1alpha1.CustomScheduler{}
	recorded.Spec.Extenders = []v1alpha1.Extender{{Name: "x", URLPrefix: "https://x.example.com", FilterVerb: "f",
		TLSConfig: tls}}
	err := buildAgain(t, Flags{Name: "n"}, recorded)
	if err == nil || !strings.Contains(err.Error(), "private key does not match") {
		t.Errorf("got %v", err)
	}
}

// `deploy --name` without a file keeps settings of the record, and neither its image nor sources.
func TestKeptSettingsReadNoFile(t *testing.T) {
	file := machine(t)
	s, err := Read(Flags{Name: "n", Image: "localhost/s:v2"})
	if err != nil {
		t.Fatal(err)
	}
	recorded := &v1alpha1.CustomScheduler{}
	recorded.Spec.Source.Plugins = []v1alpha1.Plugin{{Path: file("private@v1")}} // too large to record
	recorded.Spec.Image.RequireSignature = file("cosign.pub")
	recorded.Spec.Replicas = 2
	kept, _, err := s.Keep(deploy.Installed{Request: recorded})
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := kept.Scheduler(); err != nil || got.Spec.Replicas != 2 || len(got.Spec.Source.Plugins) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
	recorded.Spec.Configuration.File = file("config.yaml")
	if _, _, err := s.Keep(deploy.Installed{Request: recorded, Origin: "revision 3 of n"}); err == nil ||
		!strings.Contains(err.Error(), "revision 3 of n: spec.configuration.file names a file") {
		t.Errorf("got %v", err)
	}
}
