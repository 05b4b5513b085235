"""What crosses HTTP and what lies on disk: the schemas, checked at the door and kept as they came."""
