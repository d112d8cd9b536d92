package spec

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// A simulation runs a scheduler on this machine. The bundled plugin loadaware sends the content of
// a file to the address next to it.
func TestASimulatedRecordNamesNoFileInItsConfiguration(t *testing.T) {
	const token = "{url: https://attacker.example.com, BearerTokenFile: /root/.ssh/id_ed25519}"
	const head = "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"
	const inArgs = head + "profiles: [{pluginConfig: [{name: LoadAware, args: {prometheus: " + token + "}}]}]\n"
	const place = "profiles[0].pluginConfig[0].args.prometheus.BearerTokenFile"
	client := pair(t)
	for name, c := range map[string]struct {
		spec v1alpha1.CustomSchedulerSpec
		want string
	}{
		"arguments of a plugin": {v1alpha1.CustomSchedulerSpec{Source: v1alpha1.Source{
			Plugins: []v1alpha1.Plugin{{Builtin: "loadaware", Args: "prometheus: " + token}}}}, place},
		"arguments in the configuration": {v1alpha1.CustomSchedulerSpec{
			Configuration: v1alpha1.Configuration{Inline: inArgs}}, place},
		"a configuration in a ConfigMap": {v1alpha1.CustomSchedulerSpec{Configuration: v1alpha1.Configuration{
			Inline: "kind: ConfigMap\napiVersion: v1\ndata: {config.yaml: " + v1alpha1.Document(strconv.Quote(inArgs)) + "}\n"}}, place},
		"an extender of the configuration": {v1alpha1.CustomSchedulerSpec{Configuration: v1alpha1.Configuration{Inline: head +
			"extenders: [{urlPrefix: 'https://x', filterVerb: f, enableHTTPS: true, " +
			"tlsConfig: {certFile: /root/a, keyFile: /b}}]\n"}}, "extenders[0].tlsConfig.certFile"},
		"files whose content is recorded": {v1alpha1.CustomSchedulerSpec{
			Configuration: v1alpha1.Configuration{File: "own.yaml", Inline: head + "clientConnection: {kubeconfig: /etc/x}\n"},
			Extenders: []v1alpha1.Extender{{Name: "x", URLPrefix: "https://x.example.com", FilterVerb: "f",
				Ignorable: new(true), TLSConfig: &v1alpha1.TLSConfig{CA: "ca", CAData: client.Cert, CertFile: "c",
					CertData: client.Cert, KeyFile: "k", KeyData: client.Key}}},
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Read(Flags{Name: "n"})
			if err == nil {
				s, err = s.Again(deploy.Installed{Request: &v1alpha1.CustomScheduler{Spec: c.spec}}, "v1.24.3", false)
			}
			if err != nil {
				t.Fatal(err)
			}
			simulated, err := s.Simulation(nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			r := simulated.Configuration
			r.Release, r.SchedulerName, r.Kubeconfig = versions.Release{Major: 1, Minor: 24, Patch: 3}, "n", "/kubeconfig"
			r.Plugins = []string{"LoadAware"}
			for _, p := range simulated.Plugins {
				r.Enable = append(r.Enable, profiles.Plugin{Name: "LoadAware", Points: []string{"score"}, Args: p.Args})
			}
			_, err = r.Render()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want+" names the file") {
				t.Errorf("got %v, want %q", err, c.want)
			}
			r.Confined = false
			if _, err := r.Render(); err != nil {
				t.Errorf("the same of the user: %v", err)
			}
		})
	}
}

// The file that a tune of a deployed scheduler proposes is one of the user: `deploy -f` reads the
// files that it names.
func TestAFileMadeOfARecordNamesNoFileOfThisMachine(t *testing.T) {
	client := pair(t)
	recorded := &v1alpha1.CustomScheduler{}
	recorded.Spec = v1alpha1.CustomSchedulerSpec{
		Image:  v1alpha1.Image{Busybox: "/etc/shadow", Base: "../layout"},
		Source: v1alpha1.Source{From: "/home/me/kubernetes"},
		Extenders: []v1alpha1.Extender{{Name: "x", URLPrefix: "https://x.example.com", TLSConfig: &v1alpha1.TLSConfig{
			CA: "/etc/ca", CAData: client.Cert, CertFile: "../c", CertData: client.Cert, KeyFile: "/etc/kubernetes/pki/ca.key",
			KeyData: client.Key}}},
	}
	s, err := Read(Flags{Name: "n"})
	if err == nil {
		s, err = s.Again(deploy.Installed{Request: recorded, Built: &v1alpha1.Recipe{From: "/home/me/kubernetes"}},
			"v1.25.4", false)
	}
	if err != nil {
		t.Fatal(err)
	}
	simulated, err := s.Simulation(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(simulated.Request)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/etc/", "../", "/home/me"} {
		if strings.Contains(string(text), path) {
			t.Errorf("%s in %s", path, text)
		}
	}
	if got := simulated.Request.Spec.Extenders[0].TLSConfig.KeyFile; got != "recorded/ca.key" {
		t.Errorf("key file %s", got)
	}
}
