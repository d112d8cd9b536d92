package costaware

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// Values of Arguments.Unpriced.
const (
	// UnpricedNeutral gives nodes without a price the other nodes' mean score.
	UnpricedNeutral = "Neutral"
	// UnpricedAvoid gives them the lowest score.
	UnpricedAvoid = "Avoid"
)

// Arguments are the plugin's arguments in the configuration.
type Arguments struct {
	// PriceLabel is the label of nodes with their price in any unit per time, such as "0.27":
	// "pmk-sched.io/price" by default.
	PriceLabel string `json:"priceLabel,omitempty"`
	// Prices are the prices for nodes without that label, by a node label. The first match counts.
	Prices []Price `json:"prices,omitempty"`
	// Factors change prices, as for spot capacity. All that match are multiplied.
	Factors []Factor `json:"factors,omitempty"`
	// Unpriced is the treatment of nodes without a price: Neutral (the default) or Avoid.
	Unpriced string `json:"unpriced,omitempty"`
}

// Price is the price of nodes with a label.
type Price struct {
	// Label is "node.kubernetes.io/instance-type" by default.
	Label string `json:"label,omitempty"`
	Value string `json:"value"`
	// Price is more than 0.
	Price float64 `json:"price"`
}

// Factor multiplies the price of nodes with a label.
type Factor struct {
	Label string `json:"label"`
	Value string `json:"value"`
	// Factor is more than 0: 0.3 for a discount of 70 %.
	Factor float64 `json:"factor"`
}

func decode(args scheduler.Arguments) (*Arguments, error) {
	a := &Arguments{PriceLabel: "pmk-sched.io/price", Unpriced: UnpricedNeutral}
	if err := args.Decode(a); err != nil {
		return nil, err
	}
	if err := checkLabel("priceLabel", a.PriceLabel); err != nil {
		return nil, err
	}
	for i := range a.Prices {
		p := &a.Prices[i]
		if p.Label == "" {
			p.Label = "node.kubernetes.io/instance-type"
		}
		if err := checkLabel(fmt.Sprintf("prices[%d].label", i), p.Label); err != nil {
			return nil, err
		}
		if p.Value == "" || !isPrice(p.Price) {
			return nil, fmt.Errorf("prices[%d]: value and a price of more than 0 are required", i)
		}
	}
	for i, f := range a.Factors {
		if err := checkLabel(fmt.Sprintf("factors[%d].label", i), f.Label); err != nil {
			return nil, err
		}
		if f.Value == "" || !isPrice(f.Factor) {
			return nil, fmt.Errorf("factors[%d]: value and a factor of more than 0 are required", i)
		}
	}
	if a.Unpriced != UnpricedNeutral && a.Unpriced != UnpricedAvoid {
		return nil, fmt.Errorf("unpriced: %q is neither %s nor %s", a.Unpriced, UnpricedNeutral, UnpricedAvoid)
	}
	return a, nil
}

func checkLabel(field, key string) error {
	if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
		return fmt.Errorf("%s: %q is not a label key: %s", field, key, strings.Join(wrong, "; "))
	}
	return nil
}

// isPrice reports whether a number can be a price: not NaN, and not so large that costs are not
// comparable.
func isPrice(number float64) bool { return number > 0 && number < 1e9 && !math.IsInf(number, 0) }

func (a *Arguments) price(labels map[string]string) (float64, bool) {
	price, err := strconv.ParseFloat(labels[a.PriceLabel], 64)
	known := err == nil && isPrice(price)
	for i := 0; i < len(a.Prices) && !known; i++ {
		if p := a.Prices[i]; labels[p.Label] == p.Value {
			price, known = p.Price, true
		}
	}
	if !known {
		return 0, false
	}
	for _, f := range a.Factors {
		if labels[f.Label] == f.Value {
			price *= f.Factor
		}
	}
	return price, true
}
