package capture

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// served is a kind that the API server serves, in a version.
type served struct {
	kind    *snapshot.Kind
	version string
	client  rest.Interface
}

// discover returns the kinds that the API server serves. It asks for the kinds' groups only: a
// broken aggregated API does not matter.
func (c *collector) discover(ctx context.Context, cfg *rest.Config, kinds []*snapshot.Kind) ([]served, error) {
	client, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make client for %s: %w", cfg.Host, err)
	}
	d := &discoverer{collector: c, cfg: cfg, client: client.RESTClient(), lists: map[string]*metav1.APIResourceList{}}
	if err := d.readGroups(ctx); err != nil {
		return nil, err
	}
	var all []served
	for _, kind := range kinds {
		s, reason, err := d.find(ctx, kind)
		switch {
		case err != nil:
			return nil, err
		case reason == "":
			all = append(all, *s)
		case kind.External && !kind.Custom && reason == snapshot.NotServed: // nothing defines it
		case kind.Custom || kind.Required:
			return nil, problem.Invalidf("`kubectl api-resources` lists what the API server serves", "%s: %s",
				kind.GroupResource(), reason)
		default:
			c.result.Skipped = append(c.result.Skipped, snapshot.Skipped{Resource: kind.GroupResource(), Reason: reason})
		}
	}
	return all, nil
}

// discoverer asks for groups and their resources, each once.
type discoverer struct {
	*collector
	cfg    *rest.Config
	client rest.Interface
	groups map[string][]string // versions, the preferred one first
	lists  map[string]*metav1.APIResourceList
}

// readGroups reads all groups' versions.
func (d *discoverer) readGroups(ctx context.Context) error {
	var list metav1.APIGroupList
	if err := d.get(ctx, "/apis", &list); err != nil {
		return err
	}
	d.groups = map[string][]string{"": {"v1"}}
	for _, group := range list.Groups {
		versions := []string{group.PreferredVersion.Version}
		for _, version := range group.Versions {
			if version.Version != versions[0] {
				versions = append(versions, version.Version)
			}
		}
		d.groups[group.Name] = versions
	}
	return nil
}

func (d *discoverer) get(ctx context.Context, path string, into any) error {
	return d.requests.Do(ctx, "ask the API server for "+path, func(ctx context.Context) error {
		text, err := d.client.Get().AbsPath(path).SetHeader("Accept", "application/json").DoRaw(ctx)
		if err != nil {
			return err
		}
		return json.Unmarshal(text, into)
	})
}

// find returns how a kind is served, or the reason why it is skipped.
func (d *discoverer) find(ctx context.Context, kind *snapshot.Kind) (*served, string, error) {
	versions := d.groups[kind.Group]
	if !kind.Custom {
		versions = slices.DeleteFunc(slices.Clone(kind.Versions),
			func(v string) bool { return !slices.Contains(d.groups[kind.Group], v) })
	}
	for _, version := range versions {
		resource, err := d.resource(ctx, kind, version)
		if err != nil {
			return nil, "", err
		}
		if resource == nil {
			continue
		}
		if kind.Custom {
			kind.Name, kind.Namespaced = resource.Kind, resource.Namespaced
		}
		client, err := clientOf(d.cfg, kind.Group, version)
		return &served{kind: kind, version: version, client: client}, "", err
	}
	return d.missing(ctx, kind, versions)
}

// missing returns why a kind is not served in the versions that were tried.
func (d *discoverer) missing(ctx context.Context, kind *snapshot.Kind, tried []string) (*served, string, error) {
	for _, version := range d.groups[kind.Group] {
		if slices.Contains(tried, version) {
			continue
		}
		resource, err := d.resource(ctx, kind, version)
		if err != nil {
			return nil, "", err
		}
		if resource != nil {
			return nil, snapshot.UnknownVersion + " (" + version + ")", nil
		}
	}
	return nil, snapshot.NotServed, nil
}

// resource returns a kind's resource in a version, nil if it cannot be listed there.
func (d *discoverer) resource(ctx context.Context, kind *snapshot.Kind, version string) (*metav1.APIResource, error) {
	path := "/apis/" + kind.Group + "/" + version
	if kind.Group == "" {
		path = "/api/" + version
	}
	list := d.lists[path]
	if list == nil {
		list = &metav1.APIResourceList{}
		if err := d.get(ctx, path, list); err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		d.lists[path] = list
	}
	for i := range list.APIResources {
		if r := &list.APIResources[i]; r.Name == kind.Resource && slices.Contains(r.Verbs, "list") {
			return r, nil
		}
	}
	return nil, nil
}

// clientOf returns a client for a group and version.
func clientOf(cfg *rest.Config, group, version string) (rest.Interface, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.GroupVersion = &schema.GroupVersion{Group: group, Version: version}
	cfg.NegotiatedSerializer = scheme.Codecs.WithoutConversion() // decodes the error of a request
	if cfg.APIPath = "/apis"; group == "" {
		cfg.APIPath = "/api"
	}
	client, err := rest.RESTClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("make client for %s: %w", cfg.Host, err)
	}
	return client, nil
}
