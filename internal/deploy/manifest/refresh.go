package manifest

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// WithCredentials returns the objects of a scheduler with other credentials of the same mode: node
// or node-inline. Only the object that has the certificate changes, and the Deployment, which mounts
// it by its new name: that replaces the pods. objects are not changed.
func WithCredentials(objects []*unstructured.Unstructured, c Credentials) ([]*unstructured.Unstructured, error) {
	w := wirer{}
	for _, o := range objects {
		w.objects = append(w.objects, o.DeepCopy())
	}
	if err := w.find(); err != nil {
		return nil, err
	}
	s := Scheduler{Name: w.name, Namespace: w.deployment.Namespace, Credentials: c}
	if err := c.validate(w.name); err != nil {
		return nil, err
	}
	var err error
	switch volumes := w.deployment.Spec.Template.Spec.Volumes; c.Mode {
	case ModeNode:
		fresh := s.credentialsSecret()
		err = w.replaceMounted(volumes, CredentialsVolume, fresh.Name, fresh)
	case ModeNodeInline:
		fresh := s.kubeconfigMap()
		err = w.replaceMounted(volumes, KubeconfigVolume, fresh.Name, fresh)
	default:
		err = fmt.Errorf("credentials %s have no certificate to replace", c.Mode)
	}
	if err != nil {
		return nil, fmt.Errorf("replace the credentials of scheduler %s: %w", w.name, err)
	}
	return w.result()
}

// replaceMounted mounts another object in a volume, and replaces the data of the one that was mounted.
func (w *wirer) replaceMounted(volumes []corev1.Volume, volume, name string, fresh runtime.Object) error {
	content, err := plain(fresh)
	if err != nil {
		return err
	}
	for i := range volumes {
		v := &volumes[i]
		var mounted *string
		switch {
		case v.Name != volume:
			continue
		case v.Secret != nil:
			mounted = &v.Secret.SecretName
		case v.ConfigMap != nil:
			mounted = &v.ConfigMap.Name
		default:
			return fmt.Errorf("volume %s of Deployment/%s is neither a Secret nor a ConfigMap", volume, w.name)
		}
		for _, o := range w.objects {
			if o.GetKind() != content.GetKind() || o.GetName() != *mounted {
				continue
			}
			o.SetName(name)
			o.Object["data"] = content.Object["data"]
			*mounted = name
			return nil
		}
		return fmt.Errorf("%s/%s, which volume %s mounts, is not among the objects", content.GetKind(), *mounted, volume)
	}
	return fmt.Errorf("change Deployment/%s: it has no volume %s", w.name, volume)
}
