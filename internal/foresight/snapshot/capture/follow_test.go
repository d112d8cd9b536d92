package capture_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
)

// event is an event of a watch of pods.
func event(what, version, name, rest string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"n",`+
		`"resourceVersion":%q}%s}}`, what, name, version, rest)
}

// A watch reports each change that a scheduler reads once. It continues after its last event, and
// lists again when the API server has forgotten that.
func TestWatchesContinueAndListAgain(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	watches := []string{
		event("MODIFIED", "8", "a", `,"spec":{"nodeName":"x","hostname":"h"}`) + // nothing that is read
			event("ADDED", "9", "new", "") + `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"11"}}}`,
		`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`,
		event("DELETED", "13", "b", ""),
	}
	var asked []string
	server := httptest.NewServer(&server{fail: func(w http.ResponseWriter, r *http.Request, _ int) bool {
		query := r.URL.Query()
		switch {
		case r.URL.Path != "/api/v1/pods" || query.Get("limit") != "":
			if len(asked) < 2 || r.URL.Path != "/api/v1/pods" {
				return query.Get("watch") != "" // without events
			}
			fmt.Fprint(w, `{"metadata":{"resourceVersion":"12"},"items":[`+
				`{"metadata":{"name":"a","namespace":"n"},"spec":{"nodeName":"x"}},{"metadata":{"name":"b","namespace":"n"}}]}`)
			return true
		case len(asked) == len(watches):
			stop()
			return true
		}
		asked = append(asked, query.Get("resourceVersion"))
		fmt.Fprint(w, watches[len(asked)-1])
		return true
	}})
	defer server.Close()
	store, err := capture.NewSpool(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	pods := slices.DeleteFunc(snapshot.Kinds(), func(k *snapshot.Kind) bool { return k.Name != "Pod" })
	f, err := capture.Read(t.Context(), &rest.Config{Host: server.URL}, pods, store, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var changes []string
	if err := f.Follow(ctx, func(gone bool, object []byte) error {
		changes = append(changes, fmt.Sprintf("%t %s", gone, object))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(changes[1 : len(changes)-1]) // the objects that are gone have no order
	want := []string{"false new", "true c", "true new", "true b"}
	for i, text := range want {
		gone, name, _ := strings.Cut(text, " ")
		want[i] = fmt.Sprintf(`%s {"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"n"}}`, gone, name)
	}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"7", "11", "12"}, asked); diff != "" {
		t.Errorf("versions of the watches (-want +got):\n%s", diff)
	}
	if f.Listed() != 1 {
		t.Errorf("listed %d times", f.Listed())
	}
}

func TestAWatchWithoutPermissionIsRefused(t *testing.T) {
	server := httptest.NewServer(&server{fail: func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if r.URL.Query().Get("watch") == "" {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":`+
			`"nodes is forbidden: User \"u\" cannot watch resource \"nodes\" in API group \"\" at the cluster scope"}`)
		return true
	}})
	defer server.Close()
	store, err := capture.NewSpool(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	f, err := capture.Read(t.Context(), &rest.Config{Host: server.URL}, snapshot.Kinds(), store, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = f.Follow(t.Context(), func(bool, []byte) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "cannot watch nodes") {
		t.Errorf("got %v", err)
	}
}
