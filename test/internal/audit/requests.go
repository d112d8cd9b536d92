package audit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// Policy logs the metadata of each request when it is complete.
const Policy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
`

// Request is a request that an API server has completed.
type Request struct {
	// User is the name in which the request was made, of an impersonated user if there was one.
	User                                         string
	Verb, Resource, Subresource, Namespace, Name string
	Query                                        url.Values
	// URI is the path with the query.
	URI string
}

// Requests reads the requests of the clients whose user agent begins with agent from a log that was
// written with [Policy].
func Requests(file, agent string) ([]Request, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	var found []Request
	for line := range bytes.Lines(text) {
		var e struct {
			UserAgent, Verb string
			RequestURI      string `json:"requestURI"`
			ObjectRef       struct{ Resource, Subresource, Namespace, Name string }

			User, ImpersonatedUser struct{ Username string }
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("read audit log %s: %w: %q", file, err, line)
		}
		if !strings.HasPrefix(e.UserAgent, agent) {
			continue
		}
		r := Request{cmp.Or(e.ImpersonatedUser.Username, e.User.Username), e.Verb, e.ObjectRef.Resource,
			e.ObjectRef.Subresource, e.ObjectRef.Namespace, e.ObjectRef.Name, nil, e.RequestURI}
		address, err := url.ParseRequestURI(e.RequestURI)
		if err != nil {
			return nil, fmt.Errorf("read audit log %s: %w", file, err)
		}
		r.Query = address.Query()
		found = append(found, r)
	}
	return found, nil
}

// Unpaged reports whether the request lists objects without a limit.
func (r Request) Unpaged() bool { return r.Verb == "list" && r.Query.Get("limit") == "" }
