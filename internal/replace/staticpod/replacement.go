package staticpod

import (
	"sigs.k8s.io/yaml"
)

// Replacement returns the annotation [AnnotationReplacement] in a manifest. It returns "" if the
// annotation is missing or the manifest cannot be decoded.
func Replacement(manifest []byte) string {
	var pod struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if yaml.Unmarshal(manifest, &pod) != nil {
		return ""
	}
	return pod.Metadata.Annotations[AnnotationReplacement]
}

// Managed reports whether pmk-sched changed the manifest.
func Managed(manifest []byte) bool { return Replacement(manifest) != "" }
