package ask

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/zap"
)

// echoes answers each question with its number of manifests.
type echoes struct{}

func (echoes) Ask(_ context.Context, _ string, q Question) (*Answer, error) {
	if len(q.Manifests) == 0 {
		return nil, ErrBusy
	}
	return &Answer{Fits: Yes, Scheduler: q.Scheduler, Pods: []Pod{}, Evicted: []Evicted{}}, nil
}

func (echoes) Status() []Status { return []Status{{Scheduler: "packer"}} }

func TestRequestsThatAreNotQuestionsAreRefused(t *testing.T) {
	server := httptest.NewServer(newHandler(echoes{}, "0123456789abcdef", zap.NewNop()))
	defer server.Close()
	const question = `{"manifests":[{"kind":"Pod"}],"scheduler":"packer"}`
	for name, tc := range map[string]struct {
		method, path, token, kind, body string
		unknownLength                   bool
		code                            int
	}{
		"a question":        {body: question, code: 200},
		"no token":          {token: "-", body: question, code: 401},
		"another token":     {token: "Bearer 0123456789abcdeg", body: question, code: 401},
		"another method":    {method: http.MethodPut, body: question, code: 405},
		"another path":      {path: "/v2/ask", body: question, code: 404},
		"another format":    {kind: "text/plain", body: question, code: 415},
		"no length":         {body: question, unknownLength: true, code: 411},
		"a large body":      {body: `{"scheduler":"` + strings.Repeat("x", MostBody) + `"}`, code: 413},
		"no JSON":           {body: `{"manifests":`, code: 400},
		"an unknown field":  {body: `{"manifest":[]}`, code: 400},
		"other types":       {body: `{"manifests":"all"}`, code: 400},
		"too many":          {body: `{}`, code: 429},
		"status":            {method: http.MethodGet, path: "/v1/status", code: 200},
		"status, no token":  {method: http.MethodGet, path: "/v1/status", token: "-", code: 401},
		"health, no token":  {method: http.MethodGet, path: "/healthz", token: "-", code: 200},
		"OpenAPI, no token": {method: http.MethodGet, path: "/openapi", token: "-", code: 200},
	} {
		t.Run(name, func(t *testing.T) {
			var body io.Reader = strings.NewReader(tc.body)
			if tc.unknownLength {
				body = io.MultiReader(body)
			}
			method, path, kind, token := http.MethodPost, "/v1/ask", "application/json", "Bearer 0123456789abcdef"
			for value, into := range map[*string]*string{&tc.method: &method, &tc.path: &path, &tc.kind: &kind,
				&tc.token: &token} {
				if *value != "" {
					*into = *value
				}
			}
			request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, body)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", kind)
			if token != "-" {
				request.Header.Set("Authorization", token)
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != tc.code {
				t.Errorf("%s %v: %s", response.Status, err, text)
			}
		})
	}
}

// An answer has the fields that the OpenAPI document describes.
func TestOpenAPIDescribesTheAnswer(t *testing.T) {
	text, err := json.Marshal(OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]any
				Required   []string
			}
		}
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	answer, err := json.Marshal(Answer{Pods: []Pod{{Node: "a", Reason: "b"}}, Changes: []Change{{}}, Notes: []string{"c"}})
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(answer, &fields); err != nil {
		t.Fatal(err)
	}
	schema := document.Components.Schemas["Answer"]
	for field := range fields {
		if schema.Properties[field] == nil {
			t.Errorf("the document has no field %s: %v", field, schema)
		}
	}
	if len(fields) != len(schema.Properties) {
		t.Errorf("the document has %d fields, an answer %d", len(schema.Properties), len(fields))
	}
	for _, name := range []string{"Question", "Answer", "Pod", "Evicted", "Change", "Status", "Failure"} {
		if len(document.Components.Schemas[name].Properties) == 0 {
			t.Errorf("the document does not describe %s", name)
		}
	}
}
