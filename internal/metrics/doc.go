// Package metrics shows figures of the sensor to Prometheus, and its health to probes, over HTTP. It owns the names of the series
// (docs/metrics.md lists them), and who may read them: nobody who is guarded. It counts nothing itself: each answer is made from a
// snapshot that it asks for. It takes no orders, changes nothing, and no command, path or destination is in what it tells.
package metrics
