package wire

// Image is what an executed program says of itself.
type Image struct {
	PID  int      `json:"pid"`
	UID  int      `json:"uid"`
	EUID int      `json:"euid"`
	Argv []string `json:"argv"`
}
