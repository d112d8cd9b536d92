package load

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// target is an object on the API server.
type target struct {
	client          rest.Interface
	kind            *snapshot.Kind
	namespace, name string
}

func newTarget(client rest.Interface, kind *snapshot.Kind, o map[string]any) target {
	metadata, _ := o["metadata"].(map[string]any)
	t := target{client: client, kind: kind}
	t.name, _ = metadata["name"].(string)
	if kind.Namespaced {
		t.namespace, _ = metadata["namespace"].(string)
	}
	return t
}

func (t target) String() string { return kubeapi.ObjectName(t.kind.Name, t.namespace, t.name) }

// request returns a request for the object, without its name if it is to be created.
func (t target) request(verb string, subresources ...string) *rest.Request {
	r := t.client.Verb(verb).Resource(t.kind.Resource).NamespaceIfScoped(t.namespace,
		t.kind.Namespaced).SetHeader("Content-Type", "application/json")
	if verb != "POST" {
		r = r.Name(t.name).SubResource(subresources...)
	}
	return r
}

// send sends a request and returns the answer. The error contains the API server's message, which
// DoRaw does not decode.
func send(ctx context.Context, r *rest.Request) ([]byte, error) {
	result := r.Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}
