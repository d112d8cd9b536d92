package authority

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy/route"
)

// Arbiter is the name of the arbiter's webhook. The name of a webhook determines its path: this one
// is served at /arbiter, and a scheduler's name before [route.WebhookSuffix] at /route/NAME.
const Arbiter = "arbiter.pmk-sched.io"

// pathOf returns the path of a webhook, without the token.
func pathOf(name string) (path string, ok bool) {
	if name == Arbiter {
		return "/arbiter", true
	}
	if of, found := strings.CutSuffix(name, route.WebhookSuffix); found && of != "" {
		return "/route/" + of, true
	}
	return "", false
}

// Trust sets the authority and the path of every webhook of pmk-sched that calls the Service of the
// namespace. Objects leave both out, so that applying them again changes neither. It returns the
// names of the changed configurations.
func (a *Authority) Trust(ctx context.Context, kube kubernetes.Interface) (changed []string, err error) {
	// Objects of the API server's cache do: this is called again.
	managed := metav1.ListOptions{LabelSelector: ownership.LabelManagedBy + "=" + ownership.Manager, ResourceVersion: "0"}
	api := kube.AdmissionregistrationV1()
	validating, err := api.ValidatingWebhookConfigurations().List(ctx, managed)
	if err != nil {
		return nil, fmt.Errorf("list ValidatingWebhookConfigurations: %w", err)
	}
	mutating, err := api.MutatingWebhookConfigurations().List(ctx, managed)
	if err != nil {
		return nil, fmt.Errorf("list MutatingWebhookConfigurations: %w", err)
	}
	var failed []error
	options := metav1.PatchOptions{FieldManager: ownership.Manager}
	apply := func(name string, hooks []hook, do func(patch []byte) error) {
		patch, err := a.patch(hooks)
		if err == nil && patch != nil {
			if err = do(patch); err == nil {
				changed = append(changed, name)
			}
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("set the certificate authority of webhook configuration %s: %w", name, err))
		}
	}
	for i := range validating.Items {
		c := &validating.Items[i]
		var hooks []hook
		for j := range c.Webhooks {
			hooks = append(hooks, hook{c.Webhooks[j].Name, &c.Webhooks[j].ClientConfig})
		}
		apply(c.Name, hooks, func(patch []byte) error {
			_, err := api.ValidatingWebhookConfigurations().Patch(ctx, c.Name, types.JSONPatchType, patch, options)
			return err
		})
	}
	for i := range mutating.Items {
		c := &mutating.Items[i]
		var hooks []hook
		for j := range c.Webhooks {
			hooks = append(hooks, hook{c.Webhooks[j].Name, &c.Webhooks[j].ClientConfig})
		}
		apply(c.Name, hooks, func(patch []byte) error {
			_, err := api.MutatingWebhookConfigurations().Patch(ctx, c.Name, types.JSONPatchType, patch, options)
			return err
		})
	}
	return changed, errors.Join(failed...)
}

// hook is a webhook of either kind.
type hook struct {
	name   string
	client *admissionregistrationv1.WebhookClientConfig
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// patch returns the JSON patch for the webhooks of one configuration, or nil if nothing changes. It
// tests the names, since others may change the list at the same time.
func (a *Authority) patch(hooks []hook) ([]byte, error) {
	var all []operation
	for i, h := range hooks {
		path, ours := pathOf(h.name)
		service := h.client.Service
		if !ours || service == nil || service.Name != Service || service.Namespace != a.namespace {
			continue
		}
		path = "/" + a.token + path
		if bytes.Equal(h.client.CABundle, a.Cert) && service.Path != nil && *service.Path == path {
			continue
		}
		at := fmt.Sprintf("/webhooks/%d", i)
		all = append(all, operation{"test", at + "/name", h.name},
			operation{"add", at + "/clientConfig/caBundle", a.Cert},
			operation{"add", at + "/clientConfig/service/path", path})
	}
	if all == nil {
		return nil, nil
	}
	return json.Marshal(all)
}
