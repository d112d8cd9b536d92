package inspect

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// MountedCertificate is the first certificate to expire among those that a Deployment's pods mount.
type MountedCertificate struct {
	// Object is the Secret or ConfigMap that has it: "Secret/kube-system/s-credentials-1a2b".
	Object string `json:"object"`
	// Subject of the certificate: "CN=system:kube-scheduler,O=…".
	Subject string    `json:"subject"`
	Expires time.Time `json:"expires"`
}

// readMountedCertificate returns the first certificate to expire among those that a Deployment's
// pods mount from Secrets, and from kubeconfigs in ConfigMaps. It is nil if there is none. Nothing
// renews them but the next deployment.
func readMountedCertificate(ctx context.Context, core corev1client.CoreV1Interface,
	deployment *appsv1.Deployment) (*MountedCertificate, error) {
	var first *MountedCertificate
	for _, volume := range deployment.Spec.Template.Spec.Volumes {
		switch {
		case volume.Secret != nil:
			object := kubeapi.ObjectName("Secret", deployment.Namespace, volume.Secret.SecretName)
			found, err := core.Secrets(deployment.Namespace).Get(ctx, volume.Secret.SecretName, metav1.GetOptions{})
			if err != nil {
				return nil, kubeapi.Explain("read "+object, err)
			}
			first = first.orEarlier(inSecret(object, found.Data))
		case volume.ConfigMap != nil:
			object := kubeapi.ObjectName("ConfigMap", deployment.Namespace, volume.ConfigMap.Name)
			found, err := core.ConfigMaps(deployment.Namespace).Get(ctx, volume.ConfigMap.Name, metav1.GetOptions{})
			if err != nil {
				return nil, kubeapi.Explain("read "+object, err)
			}
			first = first.orEarlier(inConfigMap(object, found.Data))
		}
	}
	return first, nil
}

// FirstToExpire returns the first to expire of the certificates in the Secrets, and
// in kubeconfigs in the ConfigMaps, among objects. It is nil if there is none.
func FirstToExpire(objects []*unstructured.Unstructured) (*MountedCertificate, error) {
	var first *MountedCertificate
	for _, o := range objects {
		object := kubeapi.ObjectName(o.GetKind(), o.GetNamespace(), o.GetName())
		switch o.GetKind() {
		case "Secret":
			var secret corev1.Secret
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &secret); err != nil {
				return nil, fmt.Errorf("read %s: %w", object, err)
			}
			first = first.orEarlier(inSecret(object, secret.Data))
		case "ConfigMap":
			var configMap corev1.ConfigMap
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &configMap); err != nil {
				return nil, fmt.Errorf("read %s: %w", object, err)
			}
			first = first.orEarlier(inConfigMap(object, configMap.Data))
		}
	}
	return first, nil
}

// inSecret returns the first certificate to expire in a Secret's data, or nil.
func inSecret(object string, data map[string][]byte) *MountedCertificate {
	var first *MountedCertificate
	for _, text := range data {
		first = first.orEarlier(firstIn(object, text))
	}
	return first
}

// inConfigMap returns the first client certificate to expire in a ConfigMap's kubeconfigs, or nil.
func inConfigMap(object string, data map[string]string) *MountedCertificate {
	var first *MountedCertificate
	for _, text := range data {
		first = first.orEarlier(firstIn(object, inlineCertificates(text)))
	}
	return first
}

// firstIn returns the PEM certificate in an object that is the first to expire, or nil.
func firstIn(object string, text []byte) *MountedCertificate {
	var first *MountedCertificate
	for _, certificate := range certificates(text) {
		first = first.orEarlier(&MountedCertificate{Object: object, Subject: certificate.Subject.String(),
			Expires: certificate.NotAfter})
	}
	return first
}

// orEarlier returns the certificate that expires first. Both may be nil.
func (c *MountedCertificate) orEarlier(other *MountedCertificate) *MountedCertificate {
	if c == nil || other != nil && other.Expires.Before(c.Expires) {
		return other
	}
	return c
}

// inlineCertificates returns the client certificates in a kubeconfig. Another text has none.
func inlineCertificates(text string) []byte {
	config, err := clientcmd.Load([]byte(text))
	if err != nil {
		return nil
	}
	var found [][]byte
	for _, user := range config.AuthInfos {
		found = append(found, user.ClientCertificateData)
	}
	return slices.Concat(found...)
}

// Warning returns a warning if the certificate expires within 30 days, or has
// expired. who has it: "scheduler s in namespace kube-system".
func (c *MountedCertificate) Warning(who string, now time.Time) string {
	const renew = "deploy it again, which renews it; a copy of a node's certificate is as new as that of the node where " +
		"deploy runs"
	switch {
	case c == nil || c.Expires.Sub(now) >= certificateSoon:
		return ""
	case !now.Before(c.Expires):
		return fmt.Sprintf("%s: the certificate in %s expired on %s: %s", who, c.Object, c.Expires.Format(time.DateOnly),
			renew)
	default:
		return fmt.Sprintf("%s: the certificate in %s expires in %s, on %s: %s", who, c.Object,
			plural.Count(int(c.Expires.Sub(now).Hours()/24), "day"), c.Expires.Format(time.DateOnly), renew)
	}
}
