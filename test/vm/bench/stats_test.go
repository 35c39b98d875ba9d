package bench

import (
	"math"
	"testing"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6 {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func TestRatioIsPairedAndGeometric(t *testing.T) {
	cycle := func(before, state, after float64) Cycle {
		return Cycle{"exec": {Before: before, Guarded: state, After: after}}
	}
	// the machine slows down by a factor of four in each cycle: the ratio is 1.1 all the same
	e := Ratio([]Cycle{cycle(100, 220, 400), cycle(10, 22, 40)}, "exec", Guarded)
	near(t, "value", e.Value, 1.1)
	near(t, "low", e.Low, 1.1)
	near(t, "high", e.High, 1.1)
	if e.Rounds != 2 {
		t.Errorf("rounds = %d, want 2", e.Rounds)
	}
	e = Ratio([]Cycle{cycle(100, 100*math.Exp(0.1), 100), cycle(100, 100*math.Exp(0.3), 100)}, "exec", Guarded)
	near(t, "value", e.Value, math.Exp(0.2))
	near(t, "low", e.Low, math.Exp(0.2-12.706*0.1)) // deviation sqrt(0.02), over sqrt(2)
	if one := Ratio([]Cycle{cycle(100, 110, 100)}, "exec", Guarded); !math.IsInf(one.High, 1) {
		t.Errorf("one cycle has an interval that ends at %v", one.High)
	}
	if none := Ratio([]Cycle{cycle(0, 110, 100)}, "exec", Guarded); none.Rounds != 0 {
		t.Errorf("a cycle that was not measured counts")
	}
}

func TestQuantile(t *testing.T) {
	var x []float64
	for i := range 100 {
		x = append(x, float64(100-i))
	}
	e := Quantile(x, 0.99)
	near(t, "p99", e.Value, 99)
	if e.Low > e.Value || e.High < e.Value || e.High > 100 {
		t.Errorf("interval %v to %v around %v", e.Low, e.High, e.Value)
	}
	near(t, "all equal", Quantile([]float64{7, 7, 7}, 0.5).High, 7)
	near(t, "median", Median([]float64{3, 1, 2, 4}), 2.5)
}
