package secretfiles

import "weir/internal/bpfobj"

// MapStats tells how full the maps of secret files are.
func (f *Files) MapStats() ([]bpfobj.MapStat, error) {
	return bpfobj.MapStats(f.objects.SecretNodes, f.objects.SecretNames, f.objects.SecretOpens)
}
