//go:build linux && (cases || faults)

package hostile

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// attack answers a request instead of the API server, if it returns true.
type attack func(w http.ResponseWriter, r *http.Request) bool

// proxy is the address of the hostile cluster: it passes requests to the API server, except
// requests that its attack answers, and searches what it gets for canaries.
type proxy struct {
	*httptest.Server
	token    string
	canaries canaries

	mu     sync.Mutex
	attack attack
	// leaks describe requests that had canaries, seen counts the requests.
	leaks []string
	seen  int
}

func newProxy(t *testing.T, c canaries) *proxy {
	t.Helper()
	p := &proxy{token: canary(), canaries: c}
	pass := server.Proxy(t)
	pass.ErrorLog = log.New(io.Discard, "", 0)
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		act := p.inspect(r)
		switch {
		case act != nil && act(w, r):
		case strings.HasSuffix(r.URL.Path, "/log"): // there is no kubelet
			_, _ = io.WriteString(w, "log "+control+"\n")
		default:
			pass.ServeHTTP(w, r)
		}
	}))
	p.EnableHTTP2 = true
	p.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.StartTLS()
	t.Cleanup(func() {
		p.CloseClientConnections()
		p.Close()
	})
	return p
}

// inspect searches a request for canaries, and returns the attack.
func (p *proxy) inspect(r *http.Request) attack {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	var sent bytes.Buffer
	_, _ = fmt.Fprintln(&sent, r.URL.String()) // a buffer has no errors
	_ = r.Header.Write(&sent)
	found := append(p.canaries.find(sent.Bytes()), p.canaries.find(body)...)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen++
	for _, name := range found {
		p.leaks = append(p.leaks, fmt.Sprintf("%s was sent to the cluster: %s %s", name, r.Method, r.URL.Path))
	}
	return p.attack
}

// set makes an attack the current one, or none.
func (p *proxy) set(a attack) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.attack = a
}

// take returns the leaks and the number of requests since the last call.
func (p *proxy) take() (leaks []string, seen int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	leaks, seen = p.leaks, p.seen
	p.leaks, p.seen = nil, 0
	return slices.Compact(leaks), seen
}

// kubeconfig returns a kubeconfig of the hostile cluster.
func (p *proxy) kubeconfig() string {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw})
	return fmt.Sprintf(kubeconfig, p.URL, base64.StdEncoding.EncodeToString(authority), p.token)
}

// attacks are what a hostile API server may do, by name. elsewhere is an address that no command
// has a reason to contact.
func attacks(elsewhere string) map[string]attack {
	all := map[string]attack{
		"endless answers": func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "application/json")
			return endless(w, `{"kind":"List","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"a"}}`,
				`,{"metadata":{"name":"aaaaaaaaaaaaaaaa"}}`)
		},
		"lists of small objects": reading(func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"kind":"List","apiVersion":"v1","metadata":{},"items":[{}`)
			_, _ = io.WriteString(w, strings.Repeat(",{}", 10<<20)+"]}")
			return true
		}),
		"lists without end": reading(func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("limit") == "" {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"kind":"List","apiVersion":"v1","metadata":{"continue":"again"},"items":[]}`)
			return true
		}),
		"no answer": func(_ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		},
		"429 for ever": func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", "86400")
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		},
		"redirects": func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "http://"+elsewhere+r.URL.Path, http.StatusTemporaryRedirect)
			return true
		},
		"escapes": escaped,
	}
	for name, text := range map[string]string{
		"an old version": "v1.2.3", "a new version": "v1.99.0", "garbage as version": "\u001b]0;owned\u0007\u202egarbage",
		"a path as version": "v1.24.3-../../../../etc", "a flag as version": "--help",
	} {
		all[name] = version(func(w http.ResponseWriter) {
			_, _ = fmt.Fprintf(w, `{"major": "1", "minor": "24", "gitVersion": %s, "platform": "linux/amd64"}`, quote(text))
		})
	}
	all["an endless version"] = version(func(w http.ResponseWriter) { endless(w, `{"gitVersion":"v1.24.3`, "3333333333333333") })
	return all
}

// reading is an attack on requests that read lists or objects of Kubernetes, except discovery.
func reading(a attack) attack {
	return func(w http.ResponseWriter, r *http.Request) bool {
		parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		if r.Method != http.MethodGet || len(parts) < 3 || parts[0] == "apis" && len(parts) < 4 ||
			r.URL.Query().Has("watch") {
			return false
		}
		return a(w, r)
	}
}

// version is an attack with the answer to /version.
func version(answer func(http.ResponseWriter)) attack {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/version" {
			w.Header().Set("Content-Type", "application/json")
			answer(w)
		}
		return r.URL.Path == "/version"
	}
}

// endless writes a gigabyte, or until the client ends the connection.
func endless(w io.Writer, begin, more string) bool {
	_, err := io.WriteString(w, begin)
	chunk := strings.Repeat(more, 1<<20/len(more))
	for range 1 << 10 {
		if err != nil {
			return true
		}
		_, err = io.WriteString(w, chunk)
	}
	return true
}

// quote returns a text as JSON.
func quote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // strings have no errors
	}
	return string(quoted)
}

// control is text that changes what a terminal shows: a title, a color, the order, a line.
const control = "\u001b]0;owned\u0007\u001b[31mred\u202egnp.exe\u2066\u0085\u009b2J"

// escaped answers with texts for terminals where the API server would refuse them: names of nodes,
// warnings, and statuses of what it refuses.
func escaped(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case strings.HasPrefix(r.URL.Path, "/api/v1/nodes") && r.Method == http.MethodGet && !r.URL.Query().Has("watch") &&
		!strings.Contains(r.Header.Get("Accept"), "Table"):
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"kind":"NodeList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":%[1]s,`+
			`"labels":{"node-role.kubernetes.io/control-plane":""}},"spec":{"taints":[{"key":%[1]s,"effect":"NoExecute"}]},`+
			`"status":{"nodeInfo":{"kubeletVersion":%[1]s,"containerRuntimeVersion":%[1]s,"osImage":%[1]s}}}]}`, quote("node-"+control))
	case r.Method != http.MethodGet:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Warning", `299 - "`+control+`"`)
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":%s,"reason":"Forbidden",`+
			`"code":403}`, quote("refused "+control))
	default:
		return false
	}
	return true
}
