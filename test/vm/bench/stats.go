package bench

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Estimate is a value with its 95 % interval.
type Estimate struct {
	Value, Low, High float64
	Rounds           int
}

// Ratio estimates how much more a state costs than no sensor: each cycle gives the logarithm of one ratio, paired with what was
// measured without the sensor just before and just after; Student's t makes the interval of their mean.
func Ratio(cycles []Cycle, name, state string) Estimate {
	var logs []float64
	for _, c := range cycles {
		m := c[name]
		if m[state] > 0 && m[Before] > 0 && m[After] > 0 {
			logs = append(logs, math.Log(m[state])-(math.Log(m[Before])+math.Log(m[After]))/2)
		}
	}
	mean, half := tInterval(logs)
	return Estimate{math.Exp(mean), math.Exp(mean - half), math.Exp(mean + half), len(logs)}
}

// tInterval gives the mean and half the width of its 95 % interval; infinite with fewer than two values.
func tInterval(x []float64) (mean, half float64) {
	n := float64(len(x))
	if n < 2 {
		return mean0(x), math.Inf(1)
	}
	mean = mean0(x)
	var squares float64
	for _, v := range x {
		squares += (v - mean) * (v - mean)
	}
	return mean, student(len(x)-1) * math.Sqrt(squares/(n-1)/n)
}

func mean0(x []float64) float64 {
	var sum float64
	for _, v := range x {
		sum += v
	}
	return sum / math.Max(1, float64(len(x)))
}

// student is the 97.5 % quantile of Student's t; between the rows the wider one is taken.
func student(degrees int) float64 {
	table := []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
		2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042}
	return table[min(max(degrees, 1), len(table))-1]
}

// Quantile estimates the q quantile of x with the percentile bootstrap, 2,000 times drawn anew, always the same way.
func Quantile(x []float64, q float64) Estimate {
	const draws = 2000
	if len(x) == 0 {
		return Estimate{math.NaN(), math.NaN(), math.NaN(), 0}
	}
	random := rand.New(rand.NewPCG(1, 2))
	each, drawn := make([]float64, draws), make([]float64, len(x))
	for i := range each {
		for j := range drawn {
			drawn[j] = x[random.IntN(len(x))]
		}
		each[i] = quantile(drawn, q)
	}
	return Estimate{quantile(x, q), quantile(each, 0.025), quantile(each, 0.975), len(x)}
}

// quantile is the smallest value that at least q of all do not exceed.
func quantile(x []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(x))
	at := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(at, 0), len(sorted)-1)]
}

// Median is the middle one, or the mean of the two.
func Median(x []float64) float64 {
	sorted := slices.Sorted(slices.Values(x))
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
