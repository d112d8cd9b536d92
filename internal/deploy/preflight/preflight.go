// Package preflight checks a cluster before a deployment and reports the results as data.
//
// [Checks] returns the checks for a scheduler; [RunAll] runs them.
package preflight

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy/handmade"
)

// Options describe the scheduler to deploy.
type Options struct {
	Name      string
	Namespace string
	Image     string
	Objects   []*unstructured.Unstructured // to apply
	Port      int                          // of the scheduler, not checked if it is 0
	// Architectures of the image. If they are unknown, nodes of several are a warning.
	Architectures []string
	// TakenPorts maps ports on the nodes that are known to be in use to their users. The port that
	// this scheduler uses is not among them.
	TakenPorts map[int]string
	// Endpoints are the API servers that the scheduler uses.
	Endpoints []Endpoint
	Log       *zap.Logger // nil: silent
}

// preflight is the state that all checks for one deployment share.
type preflight struct {
	Options
	cfg   *rest.Config
	kube  kubernetes.Interface
	dyn   dynamic.Interface
	retry *kubeapi.Retrier
	pod   corev1.PodTemplateSpec // of the Deployment among the objects
	nodes labels.Selector        // of the nodes for the pod
	// selected are the nodes that match, nil until a check has read them.
	selected []selectedNode
}

// Checks returns the checks to run before a deployment. It sends no request, and fails only if cfg
// or the objects are invalid.
func Checks(cfg *rest.Config, o Options) ([]Check, error) {
	cfg = kubeapi.ClientConfig(cfg, o.Log)
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	dyn, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	p := &preflight{Options: o, cfg: cfg, kube: kube, dyn: dyn, retry: &kubeapi.Retrier{Log: o.Log}}
	if p.pod, err = podTemplate(o.Objects); err != nil {
		return nil, err
	}
	if p.nodes, err = kubeapi.NodesOf(&p.pod.Spec); err != nil {
		return nil, fmt.Errorf("read which nodes the scheduler's pod may go to: %w", err)
	}
	checks := []Check{
		{Name: "image-reference", Description: "image " + o.Image + " is well-formed", Run: p.imageReference},
		{Name: "namespace-exists", Description: "namespace " + o.Namespace + " exists", Run: p.namespaceExists},
		{Name: "names-free", Description: "no object of that name has another owner", Run: p.namesFree},
		{Name: "control-plane-node", Description: "a node accepts the scheduler's pod", Run: p.controlPlaneNode},
		{Name: "pod-admitted", Description: "the API server admits a pod of the Deployment", Run: p.podAdmitted},
	}
	if len(o.Architectures) == 0 {
		checks = append(checks, Check{Name: "node-platforms", Description: "the nodes for the pod have one platform",
			Warning: true, Run: p.onePlatform})
	}
	if o.Port != 0 && p.pod.Spec.HostNetwork {
		checks = append(checks, Check{Name: "port-free", Description: fmt.Sprintf("port %d is free", o.Port),
			Run: p.portFree})
	}
	checks = append(checks, p.endpointChecks()...)
	return append(checks, p.permissionChecks()...), nil
}

func podTemplate(objs []*unstructured.Unstructured) (corev1.PodTemplateSpec, error) {
	for _, obj := range objs {
		if obj.GetKind() != "Deployment" {
			continue
		}
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &d); err != nil {
			return corev1.PodTemplateSpec{}, fmt.Errorf("read Deployment/%s/%s: %w", obj.GetNamespace(), obj.GetName(), err)
		}
		return d.Spec.Template, nil
	}
	return corev1.PodTemplateSpec{}, errors.New("the objects to check include no Deployment")
}

func (p *preflight) imageReference(context.Context) (string, error) {
	ref, err := name.ParseReference(p.Image, name.WeakValidation)
	if err != nil {
		return "", problem.Errorf("the format is REGISTRY/REPOSITORY:TAG", "invalid image %q: %v", p.Image, err)
	}
	return ref.Name(), nil
}

func (p *preflight) namespaceExists(ctx context.Context) (string, error) {
	for _, obj := range p.Objects {
		if obj.GetKind() == "Namespace" && obj.GetName() == p.Namespace {
			return "it will be created", nil
		}
	}
	_, err := kubeapi.Get(ctx, p.retry, p.kube.CoreV1().Namespaces().Get, "Namespace", "", p.Namespace)
	if apierrors.IsNotFound(err) {
		return "", problem.Errorf("create it with `kubectl create namespace "+p.Namespace+"`, or select another with -n",
			"namespace %s does not exist", p.Namespace)
	}
	return "", unknownIfForbidden(err)
}

// namesFree fails if an object exists that pmk-sched does not manage for this scheduler.
func (p *preflight) namesFree(ctx context.Context) (string, error) {
	existing, hint := 0, "choose another --name, or delete these objects if they are not needed"
	var errs []error
	for _, obj := range p.Objects {
		if obj.GetKind() == "Namespace" {
			continue
		}
		subject := kubeapi.ObjectName(obj.GetKind(), obj.GetNamespace(), obj.GetName())
		live, err := kubeapi.Read(ctx, p.retry, "read "+subject,
			func(ctx context.Context) (*unstructured.Unstructured, error) {
				return p.dyn.Resource(resourceOf(obj)).Namespace(obj.GetNamespace()).Get(ctx, obj.GetName(), metav1.GetOptions{})
			})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return "", unknownIfForbidden(err)
		case !ownership.Owns(live.GetLabels(), p.Name):
			errs = append(errs, fmt.Errorf("%s already exists and is not managed by pmk-sched for %s", subject, p.Name))
			if isHandmade(live) {
				namespace, name := live.GetNamespace(), live.GetName()
				hint = "take it over with `pmk-sched migrate --live " + name + " -n " + namespace + " --apply`, or choose another --name"
			}
		default:
			existing++
		}
	}
	if err := errors.Join(errs...); err != nil {
		return "", problem.WithHint(err, hint)
	}
	if existing > 0 {
		return fmt.Sprintf("%d of %d objects exist already", existing, len(p.Objects)), nil
	}
	return "", nil
}

// isHandmade reports whether an object is the Deployment of a scheduler that pmk-sched does not
// manage.
func isHandmade(live *unstructured.Unstructured) bool {
	if live.GetKind() != "Deployment" || ownership.IsInstalled(live.GetLabels()) {
		return false
	}
	template, err := podTemplate([]*unstructured.Unstructured{live})
	return err == nil && handmade.RunsScheduler(template.Spec)
}

// resourceOf returns a kind's resource. The guess is right for all kinds that pmk-sched renders.
func resourceOf(obj *unstructured.Unstructured) schema.GroupVersionResource {
	resource, _ := meta.UnsafeGuessKindToResource(obj.GroupVersionKind())
	return resource
}

// unknownIfForbidden marks an error for lack of permission as ErrUnknown.
func unknownIfForbidden(err error) error {
	var forbidden *kubeapi.ForbiddenError
	if errors.As(err, &forbidden) {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return err
}
