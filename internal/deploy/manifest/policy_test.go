package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/test/golden"
)

// calling returns a scheduler that calls an extender with a client certificate.
func calling(t *testing.T, release string, policy bool) manifest.Scheduler {
	t.Helper()
	s := scheduler(t, release, manifest.ModeServiceAccount)
	cert, key := manifest.ExtenderClientPaths("load")
	ignorable := true
	request := profiles.Request{
		Release: s.Release, SchedulerName: s.Name, Kubeconfig: manifest.KubeconfigPath(s.Name), LeaderElect: true,
		Extenders: []profiles.Extender{{
			Name: "load", URLPrefix: "https://10.0.0.1", FilterVerb: "filter", Ignorable: &ignorable, EnableHTTPS: true,
			TLS: &profiles.ExtenderTLS{Insecure: true, CertFile: cert, KeyFile: key},
		}},
	}
	render := profiles.Render
	if policy {
		render = profiles.RenderPolicy
	}
	var err error
	if s.Configuration, err = render(request); err != nil {
		t.Fatal(err)
	}
	s.ExtenderClients = map[string]manifest.ClientCertificate{"load": {Cert: []byte("certificate\n"),
		Key: []byte(privateKey)}}
	return s
}

func TestSchedulerCallingExtendersMatchesTheGoldenFiles(t *testing.T) {
	for _, c := range []struct {
		release string
		policy  bool
		file    string
	}{{"v1.21.3", true, "policy-v1.21.3.yaml"}, {"v1.24.3", false, "calling-v1.24.3.yaml"}} {
		t.Run(c.file, func(t *testing.T) {
			all := objects(t, calling(t, c.release, c.policy))
			got, err := manifest.YAML(all, manifest.RenderOptions{ShowSecrets: true})
			if err != nil {
				t.Fatal(err)
			}
			golden.Equal(t, "testdata/"+c.file, got)
			hidden, err := manifest.YAML(all, manifest.RenderOptions{})
			if err != nil || strings.Contains(string(hidden), "c2VjcmV0") {
				t.Errorf("the key is shown (%v):\n%s", err, hidden)
			}
		})
	}
}

func TestExtenderFilesMustBeInThePod(t *testing.T) {
	s := calling(t, "v1.24.3", false)
	s.ExtenderClients = nil
	if _, err := manifest.Objects(s); err == nil ||
		!strings.Contains(err.Error(), "/srv/kubernetes/extenders/load.crt, which is not in the scheduler's pod") {
		t.Errorf("missing file: %v", err)
	}
	s = calling(t, "v1.24.3", false)
	s.ExtenderClients["load"] = manifest.ClientCertificate{Cert: []byte("certificate\n")}
	if _, err := manifest.Objects(s); err == nil || !strings.Contains(err.Error(), "certificate or key missing") {
		t.Errorf("a certificate without key: %v", err)
	}
}

func TestClientKeyIsNotPrinted(t *testing.T) {
	c := manifest.ClientCertificate{Key: []byte("secret")}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, c); strings.Contains(text, "secret") || strings.Contains(text, "115, 101") {
			t.Errorf("%s prints %s", verb, text)
		}
	}
}

func TestPolicyFlagsAreReserved(t *testing.T) {
	s := scheduler(t, "v1.21.3", manifest.ModeServiceAccount)
	s.Args = []string{"--policy-config-file=/x"}
	if _, err := manifest.Objects(s); err == nil ||
		!strings.Contains(err.Error(), "--policy-config-file is set by pmk-sched") {
		t.Errorf("got %v", err)
	}
}
