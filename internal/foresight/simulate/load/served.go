package load

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// served are an API server's groups and versions, with a client for each.
type served struct {
	clients   map[schema.GroupVersion]rest.Interface
	resources map[schema.GroupVersion][]string
}

// discover asks an API server for its groups, versions and resources.
func discover(ctx context.Context, cfg *rest.Config, requests *kubeapi.Retrier) (*served, error) {
	client, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make client for %s: %w", cfg.Host, err)
	}
	get := func(path string, into any) error {
		return requests.Do(ctx, "ask the API server for "+path, func(ctx context.Context) error {
			text, err := client.RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").DoRaw(ctx)
			if err != nil {
				return err
			}
			return json.Unmarshal(text, into)
		})
	}
	var groups metav1.APIGroupList
	if err := get("/apis", &groups); err != nil {
		return nil, err
	}
	s := &served{clients: map[schema.GroupVersion]rest.Interface{}, resources: map[schema.GroupVersion][]string{}}
	paths := map[schema.GroupVersion]string{{Version: "v1"}: "/api/v1"}
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			paths[schema.GroupVersion{Group: group.Name, Version: version.Version}] = "/apis/" + version.GroupVersion
		}
	}
	for gv, path := range paths {
		var list metav1.APIResourceList
		if err := get(path, &list); err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			s.resources[gv] = append(s.resources[gv], r.Name)
		}
		if s.clients[gv], err = newClient(cfg, gv); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// newClient returns a client for a group and version.
func newClient(cfg *rest.Config, gv schema.GroupVersion) (rest.Interface, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.GroupVersion, cfg.NegotiatedSerializer = &gv, scheme.Codecs.WithoutConversion()
	cfg.ContentType = "application/json"
	if cfg.APIPath = "/apis"; gv.Group == "" {
		cfg.APIPath = "/api"
	}
	client, err := rest.RESTClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("make client for %s: %w", cfg.Host, err)
	}
	return client, nil
}

// client returns the client for objects with a snapshot's kind and version, and their apiVersion.
// The client is nil if they cannot be created. In the groups policy and storage.k8s.io all versions
// have the fields that schedulers read, so that objects can be created in another version.
func (s *served) client(kind *snapshot.Kind, version string) (rest.Interface, string) {
	if kind.Custom {
		return nil, ""
	}
	versions := []string{version}
	if kind.Group == "policy" || kind.Group == "storage.k8s.io" {
		versions = append(versions, kind.Versions...)
	}
	for _, v := range versions {
		gv := schema.GroupVersion{Group: kind.Group, Version: v}
		if slices.Contains(s.resources[gv], kind.Resource) {
			return s.clientOf(gv.Group, gv.Version)
		}
	}
	return nil, ""
}

func (s *served) clientOf(group, version string) (rest.Interface, string) {
	return s.clients[schema.GroupVersion{Group: group, Version: version}], snapshot.APIVersion(group, version)
}
