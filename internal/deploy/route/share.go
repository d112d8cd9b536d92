package route

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
)

// A new pod has no UID, and often no name. The UID of its controller is random, and all pods of the
// controller have it. The pods of a share are those whose controller's UID is less, as text, than a
// threshold of the UID's first digits: CEL has neither numbers in base 16 nor a hash.

// digits is the number of digits of a threshold. uidPattern matches a UID that begins with so many.
const (
	digits     = 8
	uidPattern = "^[0-9a-f]{8}"
)

// threshold returns the first digits of the least UID that is not in a share.
func threshold(percent int) string {
	return fmt.Sprintf("%08x", uint64(percent)<<32/v1alpha1.WholeShare)
}

// inShare reports whether a pod is in a share: at less than 100 % it needs a controller.
func inShare(pod *corev1.Pod, percent int) bool {
	return percent >= v1alpha1.WholeShare || slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Controller != nil && *o.Controller && beginsWithDigits(string(o.UID)) &&
			string(o.UID) < threshold(percent)
	})
}

// beginsWithDigits reports whether a UID matches uidPattern. Clients write UIDs of owners as they
// like.
func beginsWithDigits(uid string) bool {
	for i := range digits {
		if i >= len(uid) || !strings.ContainsRune("0123456789abcdef", rune(uid[i])) {
			return false
		}
	}
	return true
}

// shareConditions are what inShare checks, in CEL.
func shareConditions(percent int) []admissionv1.MatchCondition {
	if percent >= v1alpha1.WholeShare {
		return nil
	}
	return []admissionv1.MatchCondition{{Name: "is-in-the-share", Expression: fmt.Sprintf(
		`has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, has(o.controller) && `+
			`o.controller && o.uid.matches(%q) && o.uid < %q)`, uidPattern, threshold(percent))}}
}

// SharedOwner returns a controller whose pods are in every share but 0.
func SharedOwner() metav1.OwnerReference {
	controls := true
	return metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "pmk-sched-route",
		UID: "00000000-0000-4000-8000-000000000000", Controller: &controls}
}
