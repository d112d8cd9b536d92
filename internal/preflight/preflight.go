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

	"github.com/pmk-sched/pmk-sched/internal/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/ownership"
	"github.com/pmk-sched/pmk-sched/internal/problem"
)

// Options says what is going to be deployed.
type Options struct {
	Name      string // of the scheduler
	Namespace string
	Image     string
	Objects   []*unstructured.Unstructured // as they will be applied
	Port      int                          // that the scheduler will listen on; 0: not checked
	// TakenPorts are ports that something is known to listen on, on the nodes, and what. The scheduler's own port must not be among them.
	TakenPorts map[int]string
	Log        *zap.Logger // nil: silent
}

// preflight is what all checks of one deployment look at.
type preflight struct {
	Options
	kube  kubernetes.Interface
	dyn   dynamic.Interface
	retry *kubeapi.Retrier
	pod   corev1.PodTemplateSpec // of the Deployment among the objects
	nodes labels.Selector        // of the nodes that the pod may go to
}

// Checks returns the checks to make before deploying. Nothing is asked before they are run. The error says that cfg or the objects
// cannot be used at all.
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
	p := &preflight{Options: o, kube: kube, dyn: dyn, retry: &kubeapi.Retrier{Log: o.Log}}
	if p.pod, err = podTemplate(o.Objects); err != nil {
		return nil, err
	}
	if p.nodes, err = nodeSelector(&p.pod.Spec); err != nil {
		return nil, fmt.Errorf("read which nodes the scheduler's pod may go to: %w", err)
	}
	checks := []Check{
		{Name: "image-reference", Description: "image " + o.Image + " is well-formed", Run: p.imageReference},
		{Name: "namespace-exists", Description: "namespace " + o.Namespace + " exists", Run: p.namespaceExists},
		{Name: "names-free", Description: "no name is taken by what is not ours", Run: p.namesFree},
		{Name: "control-plane-node", Description: "a node takes the scheduler's pod", Run: p.controlPlaneNode},
	}
	if o.Port != 0 && p.pod.Spec.HostNetwork {
		checks = append(checks, Check{Name: "port-free", Description: fmt.Sprintf("port %d is free", o.Port), Run: p.portFree})
	}
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
	return corev1.PodTemplateSpec{}, errors.New("no Deployment among the objects to check")
}

func (p *preflight) imageReference(context.Context) (string, error) {
	ref, err := name.ParseReference(p.Image, name.WeakValidation)
	if err != nil {
		return "", problem.Errorf("give it as REGISTRY/REPOSITORY:TAG", "image %q is not a reference: %v", p.Image, err)
	}
	return ref.Name(), nil
}

func (p *preflight) namespaceExists(ctx context.Context) (string, error) {
	for _, obj := range p.Objects {
		if obj.GetKind() == "Namespace" && obj.GetName() == p.Namespace {
			return "it will be made", nil
		}
	}
	err := p.retry.Do(ctx, "read Namespace/"+p.Namespace, func(ctx context.Context) error {
		_, err := p.kube.CoreV1().Namespaces().Get(ctx, p.Namespace, metav1.GetOptions{})
		return err
	})
	if apierrors.IsNotFound(err) {
		return "", problem.Errorf("make it with `kubectl create namespace "+p.Namespace+"`, or choose another with -n", "namespace %s does not exist", p.Namespace)
	}
	return "", unknownIfForbidden(err)
}

// namesFree looks for objects that have a name we need, and that are not ours.
func (p *preflight) namesFree(ctx context.Context) (string, error) {
	ours := 0
	var errs []error
	for _, obj := range p.Objects {
		if obj.GetKind() == "Namespace" {
			continue
		}
		subject := kubeapi.ObjectName(obj.GetKind(), obj.GetNamespace(), obj.GetName())
		var live *unstructured.Unstructured
		err := p.retry.Do(ctx, "read "+subject, func(ctx context.Context) (err error) {
			live, err = p.dyn.Resource(resourceOf(obj)).Namespace(obj.GetNamespace()).Get(ctx, obj.GetName(), metav1.GetOptions{})
			return err
		})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return "", unknownIfForbidden(err)
		case !ownership.Owns(live.GetLabels(), p.Name):
			errs = append(errs, fmt.Errorf("%s is there and was not made by pmk-sched for %s", subject, p.Name))
		default:
			ours++
		}
	}
	if err := errors.Join(errs...); err != nil {
		return "", problem.WithHint(err, "choose another --name, or delete what is in the way if it is not needed")
	}
	if ours > 0 {
		return fmt.Sprintf("%d of %d objects are there and ours", ours, len(p.Objects)), nil
	}
	return "", nil
}

// resourceOf guesses the resource of a kind; for the kinds that are ever rendered the guess is right.
func resourceOf(obj *unstructured.Unstructured) schema.GroupVersionResource {
	resource, _ := meta.UnsafeGuessKindToResource(obj.GroupVersionKind())
	return resource
}

// unknownIfForbidden marks an error by lack of permission as an unanswered question.
func unknownIfForbidden(err error) error {
	var forbidden *kubeapi.ForbiddenError
	if errors.As(err, &forbidden) {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return err
}
