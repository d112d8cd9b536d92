package preflight

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/profiles"
)

func TestAnExtenderThatReadsOnlyNamesOrOnlyNodesIsFound(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		list := corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}}
		for _, name := range []string{"a", "b"} {
			list.Items = append(list.Items, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		_ = json.NewEncoder(w).Encode(list)
	}))
	defer api.Close()
	ofNodes := func(args *extenderArgs) any {
		fit := corev1.NodeList{}
		if args.Nodes != nil {
			fit.Items = args.Nodes.Items
		}
		return extenderResult{Nodes: &fit}
	}
	ofNames := func(args *extenderArgs) any { return extenderResult{NodeNames: args.NodeNames} }
	ofBoth := func(args *extenderArgs) any { return extenderResult{NodeNames: args.NodeNames, Nodes: args.Nodes} }
	scores := func(args *extenderArgs) any {
		list := []map[string]any{}
		if args.NodeNames != nil {
			for _, name := range *args.NodeNames {
				list = append(list, map[string]any{"Host": name, "Score": 1})
			}
		}
		return list
	}
	fails := func(*extenderArgs) any { return extenderResult{Error: "no data"} }
	none := func(*extenderArgs) any { return extenderResult{NodeNames: &[]string{}, Nodes: &corev1.NodeList{}} }
	strange := func(*extenderArgs) any { return []string{"a"} }
	yes, no := true, false
	cases := map[string]struct {
		answer  func(*extenderArgs) any
		capable *bool
		path    string // served instead of /filter
		scores  bool
		status  Status
		want    string
	}{
		"nodes, configured names":   {answer: ofNodes, capable: &yes, status: Warned, want: "set nodeCacheCapable: false"},
		"nodes by default":          {answer: ofNodes, status: Passed, want: "answer to names: 0 nodes; answer to nodes: 2 nodes"},
		"names by default":          {answer: ofNames, status: Warned, want: "set nodeCacheCapable: true"},
		"names, configured names":   {answer: ofNames, capable: &yes, status: Passed, want: "answer to names: 2 nodes"},
		"both":                      {answer: ofBoth, capable: &no, status: Passed, want: "answer to nodes: 2 nodes"},
		"no node fits":              {answer: none, status: Passed, want: "answer to names: 0 nodes; answer to nodes: 0 nodes"},
		"scores of names":           {answer: scores, capable: &no, scores: true, status: Warned, want: "nodeCacheCapable: true"},
		"an error":                  {answer: fails, status: Warned, want: `error "no data"`},
		"another path":              {answer: ofBoth, path: "/filters", status: Warned, want: "HTTP status 404"},
		"an answer of another form": {answer: strange, status: Warned, want: "not the result"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			mux := http.NewServeMux()
			path := "/filter"
			if c.path != "" {
				path = c.path
			}
			serve := func(w http.ResponseWriter, r *http.Request) {
				var args extenderArgs
				if json.NewDecoder(r.Body).Decode(&args) != nil || args.Pod.Name == "" {
					http.Error(w, "no arguments", http.StatusBadRequest)
					return
				}
				_ = json.NewEncoder(w).Encode(c.answer(&args))
			}
			mux.HandleFunc(path, serve)
			mux.HandleFunc("/prioritize", serve)
			server := httptest.NewServer(mux)
			defer server.Close()
			e := profiles.Extender{URLPrefix: server.URL + "/", FilterVerb: "filter", NodeCacheCapable: c.capable}
			if c.scores {
				e.FilterVerb, e.PrioritizeVerb = "", "prioritize"
			}
			expectOutcome(t, api.URL, e, c.status, c.want)
		})
	}
	t.Run("unreachable", func(t *testing.T) {
		expectOutcome(t, api.URL, profiles.Extender{URLPrefix: "http://127.0.0.1:1", FilterVerb: "filter"}, Unknown,
			"connection refused")
	})
	t.Run("enableHTTPS without a certificate authority accepts any certificate", func(t *testing.T) {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var args extenderArgs
			_ = json.NewDecoder(r.Body).Decode(&args)
			_ = json.NewEncoder(w).Encode(ofBoth(&args))
		}))
		defer server.Close()
		e := profiles.Extender{URLPrefix: server.URL, FilterVerb: "filter", TLS: &profiles.ExtenderTLS{ServerName: "x"}}
		expectOutcome(t, api.URL, e, Unknown, "certificate")
		e.EnableHTTPS = true
		expectOutcome(t, api.URL, e, Passed, "answer to nodes: 2 nodes")
	})
	t.Run("files of another machine", func(t *testing.T) {
		expectOutcome(t, api.URL, profiles.Extender{URLPrefix: "https://127.0.0.1:1", FilterVerb: "filter",
			TLS: &profiles.ExtenderTLS{CAFile: "/none/ca.crt"}}, Unknown, "/none/ca.crt")
	})
	checks, err := ExtenderChecks(&rest.Config{Host: api.URL}, "s",
		[]CalledExtender{{Extender: profiles.Extender{URLPrefix: "http://127.0.0.1:1", BindVerb: "bind"}}})
	if err != nil || len(checks) > 0 {
		t.Errorf("an extender that only binds: %v, %v", checks, err)
	}
}

// expectOutcome checks an extender.
func expectOutcome(t *testing.T, api string, e profiles.Extender, status Status, want string) {
	t.Helper()
	checks, err := ExtenderChecks(&rest.Config{Host: api}, "s", []CalledExtender{{Extender: e}})
	if err != nil || len(checks) != 1 {
		t.Fatalf("%d checks: %v", len(checks), err)
	}
	outcomes, err := RunAll(t.Context(), checks, nil)
	if err != nil {
		t.Fatal(err)
	}
	if o := outcomes[0]; o.Status != status || !strings.Contains(o.Detail+" "+o.Hint, want) {
		t.Errorf("got %s: %s (%s), want %s: %s", o.Status, o.Detail, o.Hint, status, want)
	}
}
