package controller

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/admission"
	"github.com/pmk-sched/pmk-sched/internal/admission/authority"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
)

// admissionName is the name of the controller's permissions for admission control.
const admissionName = Name + "-admission"

// webhooksInterval is the time between two reads of the webhook configurations.
const webhooksInterval = 5 * time.Second

// admissionObjects returns the objects of admission control, and the permissions of the controller
// for it.
func admissionObjects(o ManifestOptions) []runtime.Object {
	meta := metav1.ObjectMeta{Name: admissionName, Labels: selector()}
	options := admission.ObjectOptions{Namespace: o.Namespace, Image: o.Image, Program: image.SelfPath,
		Release: o.Release, Parts: o.Admission}
	return append([]runtime.Object{
		&rbacv1.ClusterRole{TypeMeta: typeOf(rbacVersion, "ClusterRole"), ObjectMeta: meta,
			Rules: admission.ControllerRules(options)},
		&rbacv1.ClusterRoleBinding{TypeMeta: typeOf(rbacVersion, "ClusterRoleBinding"), ObjectMeta: meta,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: admissionName},
			Subjects: subjects(o.Namespace)},
	}, admission.Objects(options)...)
}

// keepWebhooks creates the certificate authority of the webhooks, and makes the API server trust
// it, until ctx ends.
func (r *reconciler) keepWebhooks(ctx context.Context) error {
	kube, err := kubernetes.NewForConfig(r.config)
	if err != nil {
		return fmt.Errorf("keep the webhooks: %w", err)
	}
	for {
		changed, err := trustWebhooks(ctx, kube, r.o.Namespace)
		if len(changed) > 0 {
			r.log.Info("set the certificate authority of webhooks", zap.String("configurations", strings.Join(changed, ", ")))
		}
		if err != nil && ctx.Err() == nil {
			r.log.Error("the webhooks do not work; trying again", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(webhooksInterval):
		}
	}
}

func trustWebhooks(ctx context.Context, kube kubernetes.Interface, namespace string) ([]string, error) {
	a, err := authority.Ensure(ctx, kube, namespace)
	if err != nil {
		return nil, err
	}
	return a.Trust(ctx, kube)
}
