package kubescheduler

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

func TestExtendersAreAskedOnce(t *testing.T) {
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls++ }))
	defer server.Close()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for name, tc := range map[string]struct {
		extender string // the fields of an extender
		// want is the extender afterwards, note a part of the note, and err of the error.
		want, note, err string
		isolated        bool
	}{
		"it answers": {extender: "urlPrefix: " + server.URL + "/x, filterVerb: f",
			want: "urlPrefix: " + server.URL + "/x, filterVerb: f"},
		"without a verb":  {extender: "urlPrefix: " + closed.URL, want: "urlPrefix: " + closed.URL},
		"nothing answers": {extender: "urlPrefix: " + closed.URL + ", filterVerb: f", err: "call extender " + closed.URL},
		"by default pods wait": {extender: "urlPrefix: " + closed.URL + ", filterVerb: f, ignorable: false",
			err: "without which no pod is scheduled"},
		"nothing answers, ignorable": {
			extender: "urlPrefix: " + closed.URL + ", prioritizeVerb: p, weight: 1, ignorable: true, enableHTTPS: true, " +
				"managedResources: [{name: a/b, ignoredByScheduler: true}], tlsConfig: {insecure: true}",
			want: "urlPrefix: 'http://127.0.0.1:1/deployed/" + strings.ReplaceAll(closed.URL, "/", "%2F") + "', prioritizeVerb: p, weight: 1, ignorable: true, " +
				"managedResources: [{name: a/b, ignoredByScheduler: true}]",
			note: "extender " + closed.URL + " is not simulated"},
		"a service of the cluster": {extender: "urlPrefix: 'http://e.kube-system.invalid:80', filterVerb: f",
			err: "call extender http://e.kube-system.invalid:80"},
		"it binds": {extender: "urlPrefix: " + server.URL + ", filterVerb: f, bindVerb: b",
			want: "urlPrefix: " + server.URL + ", filterVerb: f", note: "does not bind pods here"},
		"it only binds, in the cluster": {extender: "urlPrefix: 'http://e.kube-system.invalid:80', bindVerb: b",
			want: "urlPrefix: 'http://e.kube-system.invalid:80'", note: "does not bind pods here"},
		"with files of the pod": {
			extender: "urlPrefix: " + server.URL + ", filterVerb: f, tlsConfig: {certFile: /nowhere/a.crt, keyFile: /nowhere/a.key}",
			err:      "/nowhere/a.crt"},
		"deployed by pmk-sched": {extender: "urlPrefix: " + nowhere + "quota, filterVerb: f",
			err: "call extender quota, without which no pod is scheduled (ignorable: false): pmk-sched deploys it"},
		"deployed by pmk-sched, ignorable": {extender: "urlPrefix: " + nowhere + "quota, filterVerb: f, ignorable: true",
			want: "urlPrefix: " + nowhere + "quota, filterVerb: f, ignorable: true", note: "extender quota is not simulated"},
		"a password in an address that is not called": {
			extender: "urlPrefix: 'https://u:secret@127.0.0.1:1', filterVerb: f, tlsConfig: {caFile: /nowhere/ca.crt}",
			err:      "call extender https://u:xxxxx@127.0.0.1:1"},
		"a password in an invalid address": {extender: "urlPrefix: 'http://u:secret@127.0.0.1:x', filterVerb: f",
			err: "call extender with an invalid urlPrefix"},
		"it answers, outside of the sandbox": {isolated: true, extender: "urlPrefix: " + server.URL + ", filterVerb: f",
			err: "so it runs in a sandbox"},
		"it answers, outside of the sandbox, ignorable": {isolated: true,
			extender: "urlPrefix: " + server.URL + ", filterVerb: f, ignorable: true",
			want: "urlPrefix: 'http://127.0.0.1:1/deployed/" + strings.ReplaceAll(server.URL, "/", "%2F") +
				"', filterVerb: f, ignorable: true",
			note: "so it runs in a sandbox"},
		"a password in the address": {extender: "urlPrefix: 'http://u:secret@127.0.0.1:1', filterVerb: f",
			err: "call extender http://u:xxxxx@127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Configuration{YAML: fmt.Appendf(nil, "parallelism: 3\nextenders: [{%s}]\n", tc.extender)}
			err := c.askExtenders(t.Context(), tc.isolated)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || len(problem.Hints(err)) == 0 ||
					strings.Contains(err.Error(), "secret") {
					t.Errorf("got %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			equalYAML(t, fmt.Sprintf("parallelism: 3\nextenders: [{%s}]\n", tc.want), string(c.YAML))
			if notes := strings.Join(c.Notes, "\n"); (notes == "") != (tc.note == "") || !strings.Contains(notes, tc.note) {
				t.Errorf("notes %q, want %q", notes, tc.note)
			}
		})
	}
	if calls > 0 {
		t.Errorf("%d requests before the scheduler runs", calls)
	}
}

func equalYAML(t *testing.T, want, got string) {
	t.Helper()
	var read [2]any
	for i, text := range []string{want, got} {
		if err := yaml.Unmarshal([]byte(text), &read[i]); err != nil {
			t.Fatal(err)
		}
	}
	if fmt.Sprint(read[0]) != fmt.Sprint(read[1]) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
