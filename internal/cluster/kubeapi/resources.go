package kubeapi

import authorizationv1 "k8s.io/api/authorization/v1"

// ObjectName returns an object's name for messages: Kind/namespace/name, or Kind/name at cluster
// scope.
func ObjectName(kind, namespace, name string) string {
	if namespace == "" {
		return kind + "/" + name
	}
	return kind + "/" + namespace + "/" + name
}

// ResourceName returns the resource in a permission: `pods/log in namespace a`, `deployments.apps
// x`.
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
