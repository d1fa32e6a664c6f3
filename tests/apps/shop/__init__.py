"""An app with the handlers of an invented shop. The screenshots show an installation of this shop."""
