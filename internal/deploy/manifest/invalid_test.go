package manifest_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

func TestInvalidSchedulers(t *testing.T) {
	cases := []struct {
		name   string
		change func(*manifest.Scheduler)
		want   string
	}{
		{"no name", func(s *manifest.Scheduler) { s.Name = "" }, `scheduler name "" is not a DNS label`},
		{"capitals", func(s *manifest.Scheduler) { s.Name = "MyScheduler" },
			`scheduler name "MyScheduler" is not a DNS label`},
		{"too long", func(s *manifest.Scheduler) { s.Name = strings.Repeat("a", 64) }, "is not a DNS label"},
		{"dots", func(s *manifest.Scheduler) { s.Name = "a.b" }, "is not a DNS label"},
		{"the default's name", func(s *manifest.Scheduler) { s.Name = "default-scheduler" },
			`scheduler name "default-scheduler" is used by the cluster`},
		{"the default's lease", func(s *manifest.Scheduler) { s.Name = "kube-scheduler" },
			`scheduler name "kube-scheduler" is used by the cluster`},
		{"no image", func(s *manifest.Scheduler) { s.Image = "" }, "scheduler my-scheduler has no image"},
		{"port", func(s *manifest.Scheduler) { s.Port = 70000 }, "scheduler my-scheduler: invalid port 70000"},
		{"port after the last", func(s *manifest.Scheduler) { s.Port = 65536 }, "invalid port 65536"},
		{"last privileged port", func(s *manifest.Scheduler) { s.Port = 1023 }, "invalid port 1023"},
		{"privileged port", func(s *manifest.Scheduler) { s.Port = 443 },
			"scheduler my-scheduler: invalid port 443: must be between 1024 and 65535"},
		{"replicas without leader election", func(s *manifest.Scheduler) {
			s.Replicas, s.Configuration.LeaderElect = 2, false
		}, "2 replicas of scheduler my-scheduler without leader election"},
		{"negative replicas", func(s *manifest.Scheduler) { s.Replicas = -1 },
			"scheduler my-scheduler cannot have -1 replicas"},
		{"mode", func(s *manifest.Scheduler) { s.Credentials.Mode = "magic" },
			`scheduler my-scheduler: unknown credentials "magic"`},
		{"no key", func(s *manifest.Scheduler) { s.Credentials.Key = nil },
			"credentials node of scheduler my-scheduler have no client key"},
		{"no user", func(s *manifest.Scheduler) { s.Credentials.User = "" }, "have no user"},
		{"server", func(s *manifest.Scheduler) { s.Credentials.Server = "localhost:443" },
			`"localhost:443" is not the URL of an API server`},
		{"server without TLS", func(s *manifest.Scheduler) { s.Credentials.Server = "http://localhost:443" },
			`"http://localhost:443" is not the URL of an API server`},
		{"server without a host", func(s *manifest.Scheduler) { s.Credentials.Server = "https://:443" },
			`"https://:443" is not the URL of an API server`},
		{"server that is no URL", func(s *manifest.Scheduler) { s.Credentials.Server = "https://a:b" },
			`"https://a:b" is not the URL of an API server`},
		{"server of the node's file", func(s *manifest.Scheduler) {
			s.Credentials = manifest.Credentials{Mode: manifest.ModeHostPath, User: "u", HostPath: "/a", Server: "localhost"}
		}, `"localhost" is not the URL of an API server`},
		{"path with dots", func(s *manifest.Scheduler) {
			s.Credentials = manifest.Credentials{Mode: manifest.ModeHostPath, User: "u", HostPath: "/a/../b"}
		}, `"/a/../b" is not a path on the node`},
		{"sidecar without an image", func(s *manifest.Scheduler) {
			s.Wirings = wirings()
			s.Wirings[0].Sidecar.Image = ""
		}, "extender near has no image"},
		{"sidecar without a policy", func(s *manifest.Scheduler) {
			s.Wirings = wirings()
			s.Wirings[0].Sidecar.Policies = nil
		}, "extender near has no policy"},
		{"sidecar with a wrong policy", func(s *manifest.Scheduler) {
			s.Wirings = wirings()
			s.Wirings[0].Sidecar.Policies[0].Weight = -1
		}, "extender near: policy loadaware: invalid weight -1"},
		{"sidecar that binds", func(s *manifest.Scheduler) {
			s.Wirings = wirings()
			s.Wirings[0].Extender.BindVerb = "bind"
		}, "extender near is a sidecar, which must not bind pods"},
		{"client certificate without a key", func(s *manifest.Scheduler) {
			s.ExtenderClients = map[string]manifest.ClientCertificate{"load": {Cert: []byte("c"), Key: []byte(" \n")}}
		}, "client certificate for extender load: certificate or key missing"},
		{"client key without a certificate", func(s *manifest.Scheduler) {
			s.ExtenderClients = map[string]manifest.ClientCertificate{"load": {Key: []byte("k")}}
		}, "client certificate for extender load: certificate or key missing"},
		{"relative path", func(s *manifest.Scheduler) {
			s.Credentials = manifest.Credentials{Mode: manifest.ModeHostPath, User: "u", HostPath: "scheduler.conf"}
		}, `"scheduler.conf" is not a path on the node`},
		{"reserved flag", func(s *manifest.Scheduler) {
			s.Args = []string{
				"--secure-port=1"}
		}, "scheduler argument --secure-port is set by pmk-sched"},
		{"leader election flag", func(s *manifest.Scheduler) {
			s.Args = []string{
				"--leader-elect=false"}
		}, "scheduler argument --leader-elect is set by pmk-sched"},
		{"leader election with underscores", func(s *manifest.Scheduler) { s.Args = []string{"--leader_elect=false"} },
			"scheduler argument --leader-elect is set by pmk-sched"},
		{"port with underscores", func(s *manifest.Scheduler) { s.Args = []string{"--secure_port=10259"} },
			"scheduler argument --secure-port is set by pmk-sched"},
		{"deprecated name of the lease", func(s *manifest.Scheduler) { s.Args = []string{"--lock-object-name=x"} },
			"scheduler argument --lock-object-name is set by pmk-sched"},
		{"help", func(s *manifest.Scheduler) { s.Args = []string{"-h"} }, "scheduler argument --help is set by pmk-sched"},
		{"flag of a later release", func(s *manifest.Scheduler) {
			s.Release = versions.Release{Major: 1, Minor: 21, Patch: 3}
			s.Args = []string{"--pod-max-in-unschedulable-pods-duration=60s"}
		}, "does not exist in v1.21.3: kube-scheduler has it from 1.24 on"},
		{"misspelt flag", func(s *manifest.Scheduler) { s.Args = []string{"--leader-elect-lease-durations=20s"} },
			"scheduler argument --leader-elect-lease-durations does not exist in v1.24.3"},
		{"no value", func(s *manifest.Scheduler) { s.Args = []string{"--vmodule"} },
			"scheduler argument --vmodule has no value"},
		{"two words", func(s *manifest.Scheduler) { s.Args = []string{"--vmodule=a=1", "--v", "4"} },
			"scheduler argument --v has no value"},
		{"one dash", func(s *manifest.Scheduler) { s.Args = []string{"-profiling=false"} },
			`scheduler argument "-profiling=false" is not a flag`},
		{"directory for the certificate", func(s *manifest.Scheduler) { s.Args = []string{"--cert-dir=/var/run/kubernetes"} },
			"scheduler argument --cert-dir: the file system of the scheduler's pods is read-only"},
		{"log file", func(s *manifest.Scheduler) { s.Args = []string{"--log_file=/var/log/s.log"} },
			"scheduler argument --log-file: the file system of the scheduler's pods is read-only"},
		{"removed flag", func(s *manifest.Scheduler) {
			s.Args = []string{
				"--scheduler-name=my-scheduler"}
		}, "scheduler argument --scheduler-name does not exist in v1.24.3"},
		{"not a flag", func(s *manifest.Scheduler) { s.Args = []string{"v=5"} }, `scheduler argument "v=5" is not a flag`},
		{"old release", func(s *manifest.Scheduler) { s.Release.Minor = 19 }, "Kubernetes 1.19 is too old"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := scheduler(t, "v1.24.3", manifest.ModeNode)
			c.change(&s)
			objects, err := manifest.Objects(s)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error is %v, want %q", err, c.want)
			}
			if !problem.IsInvalid(err) || len(problem.Hints(err)) == 0 {
				t.Errorf("error %v is not marked as invalid input with a hint", err)
			}
			if objects != nil {
				t.Errorf("got %d objects with the error", len(objects))
			}
		})
	}
}

func TestSchedulerNeedsAConfigurationWithItsKubeconfig(t *testing.T) {
	for name, configuration := range map[string]*profiles.Rendered{
		"none": nil, "empty": {}, "of another kubeconfig": {YAML: []byte("kubeconfig: " + manifest.KubeconfigPath("other"))},
	} {
		s := scheduler(t, "v1.24.3", manifest.ModeNode)
		s.Configuration = configuration
		if objects, err := manifest.Objects(s); err == nil || objects != nil {
			t.Errorf("%s: got %d objects, %v", name, len(objects), err)
		}
	}
}

func TestFirstAndLastPortsAreValid(t *testing.T) {
	for _, port := range []int{1024, 65535} {
		s := scheduler(t, "v1.24.3", manifest.ModeNode)
		s.Port = port
		if got := field(t, deployment(t, s), "spec", "template", "spec", "containers", 0, "ports", 0,
			"containerPort"); got != int64(port) {
			t.Errorf("got %v, want %d", got, port)
		}
	}
}

// A private key is in one Secret (or in the ConfigMap of node-inline) and nowhere else: not in
// printed, logged or marshalled output.
func TestPrivateKeysAreHiddenByDefault(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString([]byte(privateKey))
	leaks := func(text string) bool {
		return strings.Contains(text, encoded) || strings.Contains(text, "c2VjcmV0") || strings.Contains(text, "PRIVATE")
	}
	for _, mode := range []string{manifest.ModeNode, manifest.ModeNodeInline} {
		t.Run(mode, func(t *testing.T) {
			s := scheduler(t, "v1.24.3", mode)
			all := objects(t, s)
			hidden, err := manifest.YAML(all)
			if err != nil {
				t.Fatal(err)
			}
			if leaks(string(hidden)) {
				t.Errorf("the text contains the key:\n%s", hidden)
			}
			shown, err := manifest.YAML(all, manifest.RenderOptions{ShowSecrets: true})
			if err != nil {
				t.Fatal(err)
			}
			if !leaks(string(shown)) {
				t.Error("the key is missing with ShowSecrets")
			}
			for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
				if text := fmt.Sprintf(verb, s.Credentials); leaks(text) {
					t.Errorf("%s shows the key: %s", verb, text)
				}
			}
			text, err := json.Marshal(s.Credentials)
			if err != nil || leaks(string(text)) {
				t.Errorf("JSON shows the key: %s, %v", text, err)
			}
		})
	}
}

// Only node-inline may keep a key in a ConfigMap.
func TestOnlyNodeInlineKeepsKeyInConfigMap(t *testing.T) {
	for _, mode := range manifest.Modes() {
		for _, object := range objects(t, scheduler(t, "v1.24.3", mode)) {
			if object.GetKind() != "ConfigMap" {
				continue
			}
			text := fmt.Sprint(object.Object["data"])
			if got, want := strings.Contains(text, "client-key-data"), mode == manifest.ModeNodeInline &&
				strings.HasPrefix(object.GetName(), "kubeconfig-for"); got != want {
				t.Errorf("%s: ConfigMap %s has a key: %v, want %v", mode, object.GetName(), got, want)
			}
		}
	}
}

func TestValidateNameAcceptsDNSLabels(t *testing.T) {
	for _, name := range []string{"my-scheduler", "a", "2nd", strings.Repeat("a", 63)} {
		if err := manifest.ValidateName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}
