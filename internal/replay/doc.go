// Package replay decides recorded events again under another policy, and tells what
// would change. It owns the reading of a record as a request; the decision is the
// gate's own. It asks nobody, opens nothing and contacts nobody.
package replay
