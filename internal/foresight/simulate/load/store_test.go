package load_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/foresight/apiserver"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/load"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// storage keeps the transactions. Real ones are in test/apiserver/simulate.
type storage struct{ transactions [][]apiserver.Object }

func (s *storage) Put(_ context.Context, objects []apiserver.Object) (int64, error) {
	s.transactions = append(s.transactions, objects)
	return int64(len(s.transactions)), nil
}

func (s *storage) keys() []string {
	var keys []string
	for _, objects := range s.transactions {
		for _, o := range objects {
			keys = append(keys, o.Key)
		}
	}
	return keys
}

// appendTo appends objects, and waits for them.
func appendTo(t *testing.T, s *server, stored *storage, objects ...string) error {
	t.Helper()
	web := httptest.NewServer(s)
	defer web.Close()
	l, err := load.New(t.Context(), &rest.Config{Host: web.URL, QPS: -1}, stored, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range objects {
		o, err := snapshot.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		kind, version := snapshot.Find(snapshot.Kinds(), o["apiVersion"].(string), o["kind"].(string))
		if err := l.Append(t.Context(), kind, version, o); err != nil {
			return err
		}
	}
	return l.Wait(t.Context())
}

func pod(name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"shop",`+
		`"uid":"uid-of-%s","creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"nodeName":"n"},"status":{"phase":"Running"}}`,
		name, name)
}

// Each object is stored once: a scheduler may have bound the pod before a second write, which would
// take its node away.
func TestObjectsOfAnAPIServerAreStoredInOrderAndOthersAreCreated(t *testing.T) {
	s, stored := &server{}, &storage{}
	err := appendTo(t, s, stored, pod("a"), pod("b"),
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"manifest","namespace":"shop"},"spec":{}}`, pod("c"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"pods/shop/a", "pods/shop/b", "pods/shop/c"}
	if diff := cmp.Diff(want, stored.keys()); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	want = []string{
		`POST /api/v1/namespaces {"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`,
		`GET /api/v1/namespaces/shop/pods/b`,
		`POST /api/v1/namespaces/shop/pods {"apiVersion":"v1","kind":"Pod","metadata":{"name":"manifest","namespace":"shop"},"spec":{}}`,
		`GET /api/v1/namespaces/shop/pods/c`,
	}
	if diff := cmp.Diff(want, s.requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	value := string(stored.transactions[0][0].Value)
	for _, part := range []string{`"status":{"phase":"Running"}`, `"creationTimestamp":"`, `"uid":"`} {
		if !strings.Contains(value, part) || strings.Contains(value, "uid-of-a") {
			t.Errorf("got %s", value)
		}
	}
}

func TestTransactionsAreBoundedAndHaveAKeyOnce(t *testing.T) {
	var pods, want []string
	for i := range 250 {
		name := fmt.Sprintf("p%03d", i)
		pods, want = append(pods, pod(name)), append(want, "pods/shop/"+name)
	}
	pods, want = append(pods, pod("p249")), append(want, "pods/shop/p249")
	stored := &storage{}
	if err := appendTo(t, &server{}, stored, pods...); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, stored.keys()); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	for _, objects := range stored.transactions {
		keys := map[string]bool{}
		for _, o := range objects {
			keys[o.Key] = true
		}
		if len(objects) > 128 || len(keys) < len(objects) {
			t.Errorf("a transaction of %d objects with %d keys", len(objects), len(keys))
		}
	}
}

// One object that the API server cannot read would make all of its kind unreadable.
func TestAnObjectThatCannotBeReadIsRefused(t *testing.T) {
	stored := &storage{}
	broken := strings.Replace(pod("broken"), `"nodeName":"n"`, `"nodeName":["n"]`, 1)
	err := appendTo(t, &server{}, stored, pod("good"), broken)
	if err == nil || !strings.Contains(err.Error(), "create Pod/shop/broken") ||
		slices.Contains(stored.keys(), "pods/shop/broken") {
		t.Errorf("got %v, stored %q", err, stored.keys())
	}
}

// An object that is being deleted stays so. A pod that has no kubelet is removed by an API server
// at once.
func TestObjectsThatAreBeingDeletedAreStored(t *testing.T) {
	deleted := func(text string) string {
		return strings.Replace(text, `"creationTimestamp"`, `"deletionTimestamp":"2026-01-01T00:00:00Z","creationTimestamp"`, 1)
	}
	s, stored := &server{}, &storage{}
	err := appendTo(t, s, stored, deleted(pod("running")),
		deleted(strings.Replace(pod("pending"), `"nodeName":"n"`, ``, 1)),
		deleted(strings.Replace(pod("finished"), `"Running"`, `"Failed"`, 1)),
		deleted(`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"c","namespace":"shop","uid":"u",`+
			`"creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"pods/shop/running", "persistentvolumeclaims/shop/c"}
	if diff := cmp.Diff(want, stored.keys()); diff != "" {
		t.Fatalf("stored (-want +got):\n%s", diff)
	}
	for i, parts := range [][]string{
		{`"deletionGracePeriodSeconds":604800`, `"deletionTimestamp":"`},
		{`"deletionGracePeriodSeconds":0`, `"deletionTimestamp":"`, `"finalizers":["pmk-sched.io/snapshot"]`},
	} {
		for _, part := range parts {
			if value := string(stored.transactions[i][0].Value); !strings.Contains(value, part) {
				t.Errorf("expected %s in %s", part, value)
			}
		}
	}
}
