package customresource

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// longestQuantity and longestExponent limit a quantity's text and its exponent's digits.
	longestQuantity = 64
	longestExponent = 3
)

// ParseQuantity is resource.ParseQuantity for text in an object of a custom resource. It fails if
// the text or its exponent is too long: for "1e-999999999" resource.ParseQuantity computes a number
// with so many digits, which takes hours and gigabytes of memory, and API servers accept such text.
func ParseQuantity(text string) (resource.Quantity, error) {
	if len(text) > longestQuantity {
		return resource.Quantity{}, fmt.Errorf("a quantity has %d characters, more than %d", len(text), longestQuantity)
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 && len(strings.TrimLeft(text[i+1:], "+-0")) > longestExponent {
		return resource.Quantity{}, fmt.Errorf("quantity %q: the exponent has more than %d digits", text, longestExponent)
	}
	return resource.ParseQuantity(text)
}

// Quantity is a resource.Quantity that ParseQuantity reads from JSON.
type Quantity struct{ resource.Quantity }

// UnmarshalJSON implements json.Unmarshaler for a string, a number or null.
func (q *Quantity) UnmarshalJSON(raw []byte) error {
	text := string(raw)
	switch {
	case text == "null":
		q.Quantity = resource.Quantity{}
		return nil
	case strings.HasPrefix(text, `"`):
		if err := json.Unmarshal(raw, &text); err != nil {
			return err
		}
	}
	parsed, err := ParseQuantity(strings.TrimSpace(text))
	q.Quantity = parsed
	return err
}
