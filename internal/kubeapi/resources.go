package kubeapi

import authorizationv1 "k8s.io/api/authorization/v1"

// ResourceName returns what a permission is about: `pods/log in namespace a`, `deployments.apps x`.
func ResourceName(r authorizationv1.ResourceAttributes) string {
	text := r.Resource
	if r.Group != "" {
		text += "." + r.Group
	}
	if r.Subresource != "" {
		text += "/" + r.Subresource
	}
	if r.Name != "" {
		text += " " + r.Name
	}
	if r.Namespace != "" {
		text += " in namespace " + r.Namespace
	}
	return text
}
